"""Arguments of a model's tool call, read strictly: a model is told of each mistake in words that it can act on."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from sidecar.errors import InvalidInput, Reason
from sidecar.memory.canonical_json import parse
from sidecar.memory.moments import Moment, checked_moment

_HIGHEST = 2**63


class Arguments:
    """The JSON object of a call. Each reader raises InvalidInput that names the argument."""

    def __init__(self, arguments_json: str, known: Collection[str]) -> None:
        values = parse(arguments_json or "{}", "arguments_json")
        if not isinstance(values, dict):
            raise _wrong("arguments_json", "must be one JSON object")
        for name in values:
            if name not in known:
                raise _wrong(
                    "arguments_json", f"has an argument that this tool does not take; it takes {sorted(known)}"
                )
        self._text = arguments_json
        self._values = {name: value for name, value in values.items() if value is not None}

    def given(self, name: str) -> bool:
        """Whether there is such an argument that is not null."""
        return name in self._values

    def value_text(self, name: str) -> str:
        """Any JSON value, null too, as the text that the model wrote; required."""
        given = dict(_member_texts(self._text)) if self._text.strip() else {}
        if name not in given:
            raise _wrong(name, "is required", Reason.FIELD_REQUIRED)
        return given[name]

    def text(self, name: str, default: str | None = None, *, most: int) -> str:
        """A text of at most ``most`` code points; required where there is no ``default``."""
        value = self._values.get(name, default)
        if value is None:
            raise _wrong(name, "is required", Reason.FIELD_REQUIRED)
        if not isinstance(value, str):
            raise _wrong(name, "must be a text")
        if len(value) > most:
            raise _wrong(name, f"has more than {most} characters", Reason.FIELD_TOO_LONG)
        return value

    def texts(self, name: str, *, most: int) -> tuple[str, ...]:
        """A list of at most ``most`` texts; empty where it is not given."""
        values = self._values.get(name, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise _wrong(name, "must be a list of texts")
        if len(values) > most:
            raise _wrong(name, f"has more than {most} entries", Reason.TOO_MANY_ITEMS)
        return tuple(values)

    def number(self, name: str, default: float) -> float:
        """A number from 0 to 1."""
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise _wrong(name, "must be a number from 0 to 1")
        return float(value)

    def whole(self, name: str, default: int) -> int:
        """A whole number of at most 64 bits."""
        value = self._values.get(name, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not -_HIGHEST <= value < _HIGHEST:
            raise _wrong(name, "must be a whole number")
        return value


def _member_texts(text: str) -> Iterator[tuple[str, str]]:
    """The names of a JSON object that was parsed already, each with the text of its value."""
    decoder, end = json.JSONDecoder(), text.index("{")
    while True:
        start = _past_space(text, end + 1)
        if text[start] == "}":
            return
        name, colon = decoder.raw_decode(text, start)
        start = _past_space(text, _past_space(text, colon) + 1)
        _, end = decoder.raw_decode(text, start)
        yield name, text[start:end]
        end = _past_space(text, end)
        if text[end] == "}":
            return


def _past_space(text: str, place: int) -> int:
    """The first place from ``place`` on that is no white space of JSON."""
    while text[place] in " \t\n\r":
        place += 1
    return place


def now_of(moment: Moment | None, tool: str) -> Moment:
    """The moment of a call, which the game must give. Raises InvalidInput."""
    if moment is None:
        raise InvalidInput(
            f"{tool} needs the moment of the call: set moment", reason=Reason.FIELD_REQUIRED, field="moment"
        )
    return checked_moment(moment, "moment")


def _wrong(field: str, problem: str, reason: Reason = Reason.FIELD_INVALID) -> InvalidInput:
    return InvalidInput(f"{field} {problem}", reason=reason, field=field)
