"""Finds out what answers at a backend, and says what is wrong with it in the words of a game developer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import IntEnum

from sidecar.chat.backends.client import BackendClient
from sidecar.chat.backends.failures import BackendFailed, Failure, FailureKind
from sidecar.chat.backends.known import look
from sidecar.chat.backends.profile import Backend
from sidecar.chat.backends.servers import OLLAMA, Model, Server
from sidecar.chat.backends.wire import USER, Answer, Ask, WireMessage

SMALL_WINDOW = 2_048
_PROBE_TOKENS = 128
_TOOL = {
    "type": "function",
    "function": {
        "name": "open_gate",
        "description": "Opens the gate.",
        "parameters": {"type": "object", "properties": {"gate": {"type": "string"}}, "required": ["gate"]},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"open": {"type": "boolean"}},
    "required": ["open"],
    "additionalProperties": False,
}


class Problem(IntEnum):
    """What can be wrong; the numbers are those of the contract."""

    UNREACHABLE = 1
    NOT_A_MODEL_SERVER = 2
    UNAUTHORIZED = 3
    MODEL_NOT_FOUND = 4
    NO_NATIVE_TOOLS = 5
    NO_STREAMING = 6
    NO_JSON_SCHEMA = 7
    WINDOW_UNKNOWN = 8
    WINDOW_SMALL = 9
    SILENT_TRUNCATION = 10
    TIMEOUT = 11
    SERVER_ERROR = 12
    ADDRESS_NOT_ALLOWED = 13


# What it means, and what to do about it.
WORDS = {
    Problem.UNREACHABLE: ("Nothing answers at the address.", "Start the model server, and see that its port is right."),
    Problem.NOT_A_MODEL_SERVER: (
        "Something answers there that is not a model server.",
        "See that the address ends with /v1 and that no other program uses the port.",
    ),
    Problem.UNAUTHORIZED: (
        "The server wants a key, or refuses the one that it got.",
        "Put the key into an environment variable of the daemon and name that variable in api_key_env.",
    ),
    Problem.MODEL_NOT_FOUND: ("The server does not have the model.", "Load the model there, or name one of its own."),
    Problem.NO_NATIVE_TOOLS: (
        "The model does not call tools by itself.",
        "Nothing has to be done: with tool_channel AUTO or TEXT it is told of the tools in its text. A model made for "
        "tools works better.",
    ),
    Problem.NO_STREAMING: ("The server does not stream.", "Answers come whole; set streaming to false."),
    Problem.NO_JSON_SCHEMA: (
        "The model does not keep to a JSON schema.",
        "Answers with response_schema_json will often fail; use another server or model for them.",
    ),
    Problem.WINDOW_UNKNOWN: (
        "The server does not tell how much text the model can read at once.",
        "Put the number of tokens that the server was started with into context_tokens.",
    ),
    Problem.WINDOW_SMALL: (
        f"The model's window is smaller than {SMALL_WINDOW} tokens: conversations will be forgotten quickly.",
        "Start the server with a larger context, such as 8192 tokens.",
    ),
    Problem.SILENT_TRUNCATION: (
        "This server cuts prompts that are too long in silence, the beginning first.",
        "Put the window that the server really has into context_tokens, so that prompts are never longer.",
    ),
    Problem.TIMEOUT: (
        "The server did not answer in time.",
        "It may be loading the model: try again, or give more time with timeout_ms.",
    ),
    Problem.SERVER_ERROR: ("The server failed on its own.", "See the server's own log."),
    Problem.ADDRESS_NOT_ALLOWED: (
        "The address is on another machine, or not encrypted.",
        "Set allow_remote and use https, if that is meant.",
    ),
}
# What a server answers that has no list of models.
_NO_LISTING = frozenset({404, 405})
_GRAVEST = (
    Problem.ADDRESS_NOT_ALLOWED,
    Problem.UNREACHABLE,
    Problem.TIMEOUT,
    Problem.NOT_A_MODEL_SERVER,
    Problem.UNAUTHORIZED,
    Problem.MODEL_NOT_FOUND,
    Problem.SERVER_ERROR,
    Problem.WINDOW_SMALL,
    Problem.SILENT_TRUNCATION,
    Problem.WINDOW_UNKNOWN,
    Problem.NO_STREAMING,
    Problem.NO_NATIVE_TOOLS,
    Problem.NO_JSON_SCHEMA,
)


@dataclass(frozen=True)
class Probed:
    """What was found. ``None``: not tried."""

    reachable: bool = False
    server: str = ""
    models: tuple[Model, ...] = ()
    model: str = ""
    window: int = 0
    native_tools: bool | None = None
    streaming: bool | None = None
    json_schema: bool | None = None
    usage: bool | None = None
    problems: frozenset[Problem] = field(default_factory=frozenset)

    def with_problem(self, *problems: Problem) -> Probed:
        return replace(self, problems=self.problems | set(problems))

    def gravest_first(self) -> list[Problem]:
        """What is wrong, in the order in which to look at it."""
        return [problem for problem in _GRAVEST if problem in self.problems]


class Prober:
    """Probes one backend at a time."""

    def __init__(self, client: BackendClient, backend: Backend, key: str) -> None:
        self._client = client
        self._backend = backend
        self._key = key
        self._found = Probed()

    async def probe(self, *, try_model: bool, timeout_ms: int) -> Probed:
        """What answers, as far as it could be found out in time."""
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                await self._look()
                if try_model and self._found.model:
                    await self._try_model()
        except TimeoutError:
            self._found = self._found.with_problem(Problem.TIMEOUT)
        except BackendFailed as error:
            self._found = self._told(error.failure)
        return self._found

    async def _look(self) -> None:
        try:
            server = await look(self._client, self._backend, self._key)
        except BackendFailed as error:
            if error.failure.http_status not in _NO_LISTING or not self._backend.model:
                raise
            await self._look_without_listing()
            return
        if server is None:
            self._found = Probed(reachable=True).with_problem(Problem.NOT_A_MODEL_SERVER)
            return
        self._found = Probed(reachable=True, server=server.name, models=server.models)
        self._take_model(server)

    async def _look_without_listing(self) -> None:
        """A server that lists no models may still speak."""
        self._found = Probed(model=self._backend.model)
        await self._ask("Say hello.")
        self._found = replace(self._found, reachable=True)
        self._take_window(self._backend.context_tokens)

    def _take_model(self, server: Server) -> None:
        wanted = self._backend.model
        model = server.fitting(wanted) if wanted else next(iter(server.models), None)
        if model is None:
            self._found = self._found.with_problem(Problem.MODEL_NOT_FOUND)
            return
        self._found = replace(self._found, model=model.name)
        self._take_window(self._backend.context_tokens or model.window)
        if server.name == OLLAMA and not self._backend.context_tokens:
            self._found = self._found.with_problem(Problem.SILENT_TRUNCATION)

    def _take_window(self, window: int) -> None:
        self._found = replace(self._found, window=window)
        if not window:
            self._found = self._found.with_problem(Problem.WINDOW_UNKNOWN)
        elif window < SMALL_WINDOW:
            self._found = self._found.with_problem(Problem.WINDOW_SMALL)

    async def _try_model(self) -> None:
        await self._try_words()
        await self._try_tools()
        await self._try_schema()

    async def _try_words(self) -> None:
        _, answer = await self._ask("Say hello.")
        self._found = replace(self._found, streaming=answer.streamed, usage=answer.tokens is not None)
        if not answer.streamed:
            self._found = self._found.with_problem(Problem.NO_STREAMING)

    async def _try_tools(self) -> None:
        try:
            _, answer = await self._ask("Open the north gate with your tool.", tools=True)
            calls = bool(answer.calls)
        except BackendFailed as error:
            if error.failure.kind is not FailureKind.INVALID_REQUEST:
                raise
            calls = False
        self._found = replace(self._found, native_tools=calls)
        if not calls:
            self._found = self._found.with_problem(Problem.NO_NATIVE_TOOLS)

    async def _try_schema(self) -> None:
        from sidecar.chat.turns.arguments import Schema
        from sidecar.chat.turns.structured import checked_answer

        try:
            text, _ = await self._ask(
                'Is the gate open? Answer with JSON: {"open": true} or {"open": false}.', schema=True
            )
            keeps = not checked_answer(text, Schema(SCHEMA)).errors
        except BackendFailed as error:
            if error.failure.kind is not FailureKind.INVALID_REQUEST:
                raise
            keeps = False
        self._found = replace(self._found, json_schema=keeps)
        if not keeps:
            self._found = self._found.with_problem(Problem.NO_JSON_SCHEMA)

    async def _ask(self, line: str, *, tools: bool = False, schema: bool = False) -> tuple[str, Answer]:
        ask = Ask(
            [WireMessage(USER, line)],
            tools=[_TOOL] if tools else (),
            model=self._found.model,
            max_output_tokens=_PROBE_TOKENS,
            schema=SCHEMA if schema else None,
        )
        text, answer = "", Answer()
        async with aclosing(self._client.answer(self._backend, ask, key=self._key)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Answer):
                    answer = piece
                else:
                    text += piece
        return text, answer

    def _told(self, failure: Failure) -> Probed:
        """What a failed request tells of the server."""
        answered = failure.http_status > 0 or self._found.reachable
        found = replace(self._found, reachable=answered)
        if failure.model_missing:
            return found.with_problem(Problem.MODEL_NOT_FOUND)
        if failure.kind in (FailureKind.AUTH_EXPIRED, FailureKind.PAYMENT_REQUIRED):
            return found.with_problem(Problem.UNAUTHORIZED)
        if failure.kind is FailureKind.TIMEOUT:
            return found.with_problem(Problem.TIMEOUT)
        if not answered:
            return found.with_problem(Problem.UNREACHABLE)
        known = self._found.reachable or failure.http_status >= 500
        return found.with_problem(Problem.SERVER_ERROR if known else Problem.NOT_A_MODEL_SERVER)
