"""What may be embedded: checks texts at the door and cuts the long ones. Pure; an error never carries the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.bounds import Bound, require_count
from sidecar.errors import InvalidInput, Reason


@dataclass(frozen=True)
class TextCut:
    """A text that was too long: what was read of it and what was not. ``unit`` is ``code_points`` or ``tokens``."""

    index: int
    unit: str
    kept: int
    dropped: int


@dataclass(frozen=True)
class AcceptedTexts:
    """Texts within the limits, in the caller's order, and what was cut off them."""

    texts: tuple[str, ...]
    cuts: tuple[TextCut, ...]


def accept(texts: Sequence[str], *, max_texts: int, max_chars: int) -> AcceptedTexts:
    """Refuse what has no vector (no text, blank, NUL, half a surrogate pair); cut what is too long."""
    if not texts:
        raise InvalidInput("give at least one text", reason=Reason.FIELD_REQUIRED, field="texts")
    require_count(len(texts), "texts", Bound("embedding.max_texts", max_texts))
    for index, text in enumerate(texts):
        _check(index, text)
    cuts = tuple(
        TextCut(index=index, unit="code_points", kept=max_chars, dropped=len(text) - max_chars)
        for index, text in enumerate(texts)
        if len(text) > max_chars
    )
    return AcceptedTexts(texts=tuple(text[:max_chars] for text in texts), cuts=cuts)


def _check(index: int, text: str) -> None:
    field = f"texts[{index}]"
    if not text or text.isspace():
        raise InvalidInput(f"{field} is blank: leave it out", reason=Reason.FIELD_REQUIRED, field=field)
    if "\0" in text:
        raise InvalidInput(f"{field} contains NUL: remove it", reason=Reason.FIELD_INVALID, field=field)
    if not _is_unicode(text):
        raise InvalidInput(
            f"{field} contains half a surrogate pair: send whole characters", reason=Reason.FIELD_INVALID, field=field
        )


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
