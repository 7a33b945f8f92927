"""Model servers that misbehave, and turns that are ended at each of their stages, as the game sees them."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
from typing import Any

import pytest
from turn_client import TurnClient, tool
from wire_server import WAIT_SECONDS, Reply, calls, delta, end, error, event, stream, whole

from sidecar.gen.lorekeeper.v1 import chat_pb2

TEXT = "Grüße, 勇者 🐉!"
FINISHED = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
FAULT = {"error": {"message": "Loading model", "code": 503}}


@pytest.fixture
def game(shared_daemon: Any, actor: Any, server: Any) -> TurnClient:
    return TurnClient(shared_daemon.client, actor, server, max_retries=0)


def in_pieces(data: bytes, size: int) -> Reply:
    return Reply([data[at : at + size] for at in range(0, len(data), size)])


@pytest.mark.parametrize(
    "reply",
    [
        in_pieces(delta(content=TEXT) + end(), 1),
        in_pieces(delta(content=TEXT) + end(), 3),
        in_pieces(b"\xef\xbb\xbf: hello\r\n\r\n" + delta(content=TEXT).replace(b"\n", b"\r\n") + end(), 5),
        Reply([delta(content=TEXT), FINISHED]),
        Reply([delta(content=TEXT), FINISHED], hang_up=True),
        Reply([delta(content=TEXT), FINISHED], hold=True),
        Reply([delta(content=TEXT)]),
        Reply([delta(content=TEXT), end()], chunked=False),
        whole({"choices": [{"message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}]}),
        Reply([b"data:\n\n", delta(content=TEXT), b"data: \n\n", end()]),
        Reply([delta(content=TEXT[:5]), delta(content=TEXT[5:]).rstrip()]),
        Reply([delta(content=TEXT), b"data: [DONE]"]),
    ],
    ids=[
        "bytes",
        "threes",
        "mark",
        "no done",
        "breaks off at the end",
        "never ends",
        "no finish",
        "unbounded",
        "whole",
        "blank events",
        "last event open",
        "done open",
    ],
)
def test_an_answer_that_is_all_there_is_heard_however_it_comes(game, server, reply):
    server.play(reply)
    assert game.send("Hello").completed.text == TEXT
    assert game.messages() == [("user", "Hello"), ("assistant", TEXT)]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply([delta(content="Hi")], hang_up=True), "BACKEND_UNAVAILABLE"),
        (Reply([delta(content="Hi"), b'data: {"choices":[{"del']), "BACKEND_UNAVAILABLE"),
        (Reply([], hang_up=True), "BACKEND_UNAVAILABLE"),
        (Reply([delta(content="Hi"), f"error: {json.dumps(FAULT['error'])}\n\n".encode()]), "BACKEND_UNAVAILABLE"),
        (Reply([delta(content="Hi"), b'{"error":"unexpected EOF"}\n']), "BACKEND_UNAVAILABLE"),
        (Reply([delta(content="Hi"), b'event: error\ndata: {"message":"boom"}\n\n', end()]), "PROVIDER_ERROR"),
        (Reply([delta(content="Hi"), b"event: error\ndata: boom\n\n", end()]), "PROVIDER_ERROR"),
        (Reply([delta(content="Hi"), end("error")]), "PROVIDER_ERROR"),
        (Reply([delta(content="Hi"), end("abort")]), "PROVIDER_ERROR"),
        (Reply([delta(content="Hi"), event({"choices": [FAULT]}), end()]), "BACKEND_UNAVAILABLE"),
        (whole(FAULT), "BACKEND_UNAVAILABLE"),
        (Reply([event(FAULT)]), "BACKEND_UNAVAILABLE"),
        (Reply([json.dumps(FAULT).encode()], headers={"content-type": "text/plain"}), "BACKEND_UNAVAILABLE"),
        (Reply([b"<html>"], headers={"content-type": "text/html"}), "PROVIDER_ERROR"),
        (error(413, {"error": "too large"}), "CONTEXT_LENGTH_EXCEEDED"),
        (error(500, {"error": "x"}), "BACKEND_UNAVAILABLE"),
        (error(302, {}, location="http://127.0.0.1:1/"), "INVALID_REQUEST"),
    ],
)
def test_half_an_answer_or_an_error_in_its_place_is_told_and_never_stored(game, server, reply, code):
    game.put_role(max_overflow_retries=0)
    server.play(reply)
    assert game.send("Hello").code == code
    assert game.messages() == [("user", "Hello")]


class Drip:
    """A model server that says ``begin``, and then ``again`` twenty times a second until its caller hangs up."""

    def __init__(self, begin: bytes, again: bytes) -> None:
        self._says = (begin, again)
        self.hung_up_on = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        caller, _ = self._listener.accept()
        begin, again = self._says
        with caller, contextlib.suppress(OSError):
            request = more = caller.recv(65_536)
            while more and b'"messages"' not in request:
                request += (more := caller.recv(65_536))
            caller.sendall(begin)
            caller.settimeout(0.05)
            for _ in range(int(20 * WAIT_SECONDS)):
                with contextlib.suppress(TimeoutError):
                    if not caller.recv(65_536):
                        break
                caller.sendall(again)
            else:
                return
        self.hung_up_on.set()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


CHUNKED = b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
OK, REFUSED = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 500 No\r\n"


@pytest.mark.parametrize(
    ("begin", "again", "code"),
    [
        (OK + CHUNKED + chunk(delta(content=TEXT) + FINISHED), chunk(b": still here\n\n"), ""),
        (OK + CHUNKED + chunk(delta(content=TEXT) + end()), chunk(b": still here\n\n"), ""),
        (REFUSED + CHUNKED, chunk(b" "), "BACKEND_UNAVAILABLE"),
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n", "TIMEOUT"),
        (OK, b"x-more: x\r\n", "TIMEOUT"),
    ],
    ids=["after its finish", "after its end", "in a refusal", "before its answer", "in its headers"],
)
def test_a_server_that_never_comes_to_an_end_is_hung_up_on(game, begin, again, code):
    with contextlib.closing(Drip(begin, again)) as server:
        patience = 500 if code == "TIMEOUT" else 3_000
        waits = {"connect_timeout_ms": patience, "idle_timeout_ms": patience}
        game.put_backend(base_url=server.base_url, max_retries=0, **waits)
        turn = game.send("Hello")
        assert server.hung_up_on.wait(WAIT_SECONDS)
    assert turn.code == code if code else turn.completed.text == TEXT


def test_no_packed_answer_is_asked_for_or_unpacked(game, server):
    packed = gzip.compress(delta(content=TEXT) + end())
    server.play(Reply([packed], headers={"content-encoding": "gzip"}))
    assert game.send("Hello").code == "PROVIDER_ERROR"
    assert server.turns[0].headers["accept-encoding"] == "identity"


def test_a_server_that_is_down_is_told_and_the_line_is_kept(game):
    game.put_backend(base_url="http://127.0.0.1:1/v1", max_retries=0)
    turn = game.send("Hello")
    assert (turn.code, turn.kinds, turn.failed.backend_id) == ("BACKEND_UNAVAILABLE", ["started"], "scripted")
    assert game.messages() == [("user", "Hello")]


def test_a_server_that_failed_once_is_asked_again(game, server):
    game.put_backend(base_url=server.base_url)
    server.play(error(500, {"error": "x"}, retry_after_ms="10"), stream("Hi"))
    turn = game.send("Hello")
    assert (turn.warnings, turn.completed.text) == (["RETRY"], "Hi")
    assert game.messages() == [("user", "Hello"), ("assistant", "Hi")]


def piece(index: int | None, call_id: str = "", name: str = "", arguments: str = "") -> bytes:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    call: dict[str, Any] = {"function": function} | ({"id": call_id} if call_id else {})
    return delta(tool_calls=[call if index is None else {"index": index, **call}])


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "a", "look", '{"at": "door"}'), piece(0, "b", "look", '{"at": "wall"}')],
        [
            piece(0, "a", "look", '{"at"'),
            piece(1, "b", "look", '{"at": '),
            piece(0, arguments=': "door"}'),
            piece(1, arguments='"wall"}'),
        ],
        [piece(0, "a", "look", '{"at": "door"}'), piece(1, "a", "look", '{"at": "wall"}')],
        [piece(None, "a", "look", '{"at": "door"}'), piece(None, "b", "look", '{"at": "wall"}')],
    ],
    ids=["one index", "interleaved", "one id", "no index"],
)
def test_two_calls_are_two_however_a_server_numbers_them(game, server, pieces):
    server.play(Reply([*pieces, end("tool_calls")]), stream("I see."))
    talk = game.converse(tool("look"))
    talk.line("Look around!")
    turn = talk.turn(lambda call: call.arguments_json)
    assert [json.loads(call.arguments_json)["at"] for call in turn.all("tool_call")] == ["door", "wall"]
    assert len({call.call_id for call in turn.all("tool_call")}) == 2
    assert turn.completed.text == "I see."


def test_a_name_that_a_server_sends_with_every_piece_runs_its_tool_once(game, server):
    pieces = [piece(0, "a", "open_gate"), piece(0, "", "open_gate", "{}"), piece(0, "", "open_gate")]
    server.play(Reply([*pieces, end("tool_calls")]), stream("Open."))
    talk = game.converse(tool("open_gate", mutating=True))
    talk.line("Open the gate!")
    assert len(talk.turn(lambda call: "{}").all("tool_call")) == 1


def test_a_call_that_a_server_tells_twice_by_the_wire_and_in_the_text_runs_once(game, server):
    written = '<tool_call>\n{"name": "pay", "arguments": {"to": "Ada", "coins": 5}}\n</tool_call>'
    native = piece(0, "a", "pay", '{"coins":5,"to":"Ada"}')
    server.play(Reply([delta(content=written), native, end("tool_calls")]), stream("Paid."))
    talk = game.converse(tool("pay", mutating=True))
    talk.line("Pay Ada!")
    turn = talk.turn(lambda call: "{}")
    assert (len(turn.all("tool_call")), turn.completed.text) == (1, "Paid.")


@pytest.mark.parametrize(
    ("stage", "rows"),
    [
        ("started", 1),
        ("text", 1),
        ("tool_call", 3),
        ("warning", 1),
    ],
)
def test_a_turn_that_is_cancelled_at_any_stage_ends_its_request_and_keeps_the_line_once(game, server, stage, rows):
    game.put_backend(base_url=server.base_url)
    gate = server.gate()
    replies = {
        "started": Reply([gate]),
        "text": stream("Well", gate),
        "tool_call": calls(("look", {})),
        "warning": error(503, {"error": "busy"}, retry_after="20"),
    }
    server.play(replies[stage], stream("Yes?"))
    talk = game.converse(tool("look"))
    talk.line("Hello")
    talk.until(stage)
    talk.say(cancel=chat_pb2.CancelTurn())
    assert talk.turn().code == "CANCELLED"
    assert stage not in ("started", "text") or server.turns[0].gone.wait(WAIT_SECONDS)
    assert (len(game.transcript()), game.messages()) == (rows, [("user", "Hello")])
    talk.line("Are you there?")
    assert talk.turn().completed.text == "Yes?"
