"""What model servers tell of themselves: which one it is, its models and their windows. No I/O.

GET /v1/models      all of them; vLLM has max_model_len, llama.cpp says who owns the model
GET /props          llama.cpp: the window of one slot
GET /api/v0/models  LM Studio: the window that a model was loaded with
GET /api/ps         Ollama: the window of the models that are loaded
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

LLAMA_CPP = "llama.cpp"
LM_STUDIO = "LM Studio"
OLLAMA = "Ollama"
VLLM = "vLLM"
# What Ollama loads a model with unless it is told otherwise; what is longer it cuts in silence.
OLLAMA_WINDOW = 4_096
# Where each server tells more than /v1/models does.
DETAILS = {LLAMA_CPP: "/props", LM_STUDIO: "/api/v0/models", OLLAMA: "/api/ps"}
_OWNERS = {"llamacpp": LLAMA_CPP, "library": OLLAMA, "organization_owner": LM_STUDIO, "vllm": VLLM}
# The local ports that servers use unless told otherwise.
USUAL_PORTS = {8080: LLAMA_CPP, 1234: LM_STUDIO, 11434: OLLAMA, 8000: VLLM, 13333: "LLMUnity"}


@dataclass(frozen=True)
class Model:
    """A model of a server; ``window`` in tokens, 0 where it is not told."""

    name: str
    window: int = 0


@dataclass(frozen=True)
class Server:
    """What answers at an address; ``name`` is empty where it is none of those known."""

    name: str = ""
    models: tuple[Model, ...] = ()

    def fitting(self, wanted: str) -> Model | None:
        """The model of that name, with or without Ollama's tag; a llama.cpp has one model and takes any name."""
        for model in self.models:
            if wanted in (model.name, model.name.removesuffix(":latest")):
                return model
        return self.models[0] if self.name == LLAMA_CPP and len(self.models) == 1 else None


def server_of(listing: Any) -> Server | None:
    """What the answer of ``/models`` tells; None where it is no such answer."""
    entries = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(entries, list):
        return None
    rows = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    owners = (_OWNERS.get(str(row.get("owned_by", "")).lower(), "") for row in rows)
    return Server(next((owner for owner in owners if owner), ""), tuple(_model(row) for row in rows))


def with_details(server: Server, details: Any) -> Server:
    """The server with the windows that its own address for details tells."""
    if server.name == LLAMA_CPP:
        window = _number(_object(_object(details).get("default_generation_settings")).get("n_ctx"))
        return _windows(server, dict.fromkeys((model.name for model in server.models), window))
    rows = _object(details).get("models" if server.name == OLLAMA else "data")
    return _windows(server, dict(_named_windows(rows)))


def _named_windows(rows: Any) -> Iterator[tuple[str, int]]:
    for row in rows if isinstance(rows, list) else ():
        each = _object(row)
        window = _number(each.get("loaded_context_length")) or _number(each.get("context_length"))
        for name in {each.get("id"), each.get("name"), each.get("model")}:
            if isinstance(name, str):
                yield name, window


def _windows(server: Server, windows: Mapping[str, int]) -> Server:
    models = (replace(model, window=windows.get(model.name, 0) or model.window) for model in server.models)
    return replace(server, models=tuple(models))


def _model(row: Mapping[str, Any]) -> Model:
    window = _number(row.get("max_model_len")) or _number(row.get("context_length"))
    return Model(str(row["id"]), window)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
