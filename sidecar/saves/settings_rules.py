"""The settings of a save: what is allowed, and what holds where nothing was put."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict

from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import save_pb2, search_pb2
from sidecar.search.languages import code_of, is_known
from sidecar.settings import SavesSettings
from sidecar.wire import require_known

_MAX_LANGUAGES = 16
_KEPT = 5
# path of the field: lowest, highest (None: no bound)
_RANGES: Mapping[str, tuple[float, float | None]] = {
    "similarity_floor": (-1, 1),
    "automatic_checkpoints.every_minutes": (1, None),
    "automatic_checkpoints.every_ticks": (1, None),
    "automatic_checkpoints.keep": (1, 1_000),
    "fusion.rrf_k": (1, 1_000),
    "fusion.lexical_weight": (0, 100),
    "fusion.vector_weight": (0, 100),
    "fusion.context_lexical_weight": (0, 100),
    "fusion.context_vector_weight": (0, 100),
    "rerank.source_order_weight": (0, 10_000_000),
    "rerank.importance_weight": (0, 10_000_000),
    "rerank.recency_weight": (0, 10_000_000),
    "rerank.diversity_penalty": (0, 10_000_000),
    "rerank.half_life_ticks": (1, None),
    "rerank.max_greedy_selections": (1, 4_096),
}


def settings_from(message: save_pb2.SaveSettings, limits: SavesSettings) -> dict[str, Any]:
    """The settings as they are stored, absent fields absent. Raises InvalidInput."""
    if len(message.name) > limits.max_name_chars:
        raise _invalid("name", f"has {len(message.name)} characters; the limit is {limits.max_name_chars}")
    check_settings(message)
    stored: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return stored


def check_settings(message: save_pb2.SaveSettings) -> None:
    """Raise InvalidInput for a language or a number that no save may have."""
    if len(message.languages) > _MAX_LANGUAGES:
        raise _invalid("languages", f"has {len(message.languages)} languages; the limit is {_MAX_LANGUAGES}")
    for place, language in enumerate(message.languages):
        if len(language) != 2 or not language.isascii() or not language.islower():
            raise _invalid(f"languages[{place}]", "must be a two-letter code in lower case, such as 'en'")
        if not is_known(language):
            raise _invalid(f"languages[{place}]", "is a language that no stemmer or rule is known for")
    require_known(search_pb2.FusionMode, message.fusion.mode, "settings.fusion.mode")
    for path, (low, high) in _RANGES.items():
        value = _at(message, path)
        if value is not None and not (low <= value and (high is None or value <= high)):
            raise _invalid(path, f"is {value}; it must be from {low}" + ("" if high is None else f" to {high}"))


def settings_to(stored: Mapping[str, Any]) -> save_pb2.SaveSettings:
    """The message of stored settings."""
    if not stored:
        return save_pb2.SaveSettings()
    return ParseDict(dict(stored), save_pb2.SaveSettings(), ignore_unknown_fields=True)


def effective_settings(stored: Mapping[str, Any], *, language: str = "english") -> save_pb2.SaveSettings:
    """The settings with what this room decides filled in; ``language`` is that of a save that names none."""
    message = settings_to(stored)
    if not message.languages:
        message.languages.append(code_of(language))
    if message.HasField("automatic_checkpoints") and not message.automatic_checkpoints.HasField("keep"):
        message.automatic_checkpoints.keep = _KEPT
    return message


def _at(message: Any, path: str) -> float | None:
    """The number at a path, or None where it or what it lies in is absent."""
    *outer, name = path.split(".")
    for part in outer:
        if not message.HasField(part):
            return None
        message = getattr(message, part)
    return getattr(message, name) if message.HasField(name) else None


def _invalid(path: str, what: str) -> InvalidInput:
    return InvalidInput(f"settings.{path} {what}", reason=Reason.FIELD_INVALID, field=f"settings.{path}")
