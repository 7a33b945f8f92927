"""One answer of a model, as it is heard: reasoning and written calls taken out, the rest passed on at once. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sidecar.chat.backends.reasoning import ReasoningFilter, Shown
from sidecar.chat.backends.wire import WireCall
from sidecar.chat.turns.events import Event, Said, TakenBack
from sidecar.chat.turns.text_calls import Found, TextCalls
from sidecar.compaction.cuts import Cut, CutKind, Unit

_REASONING = "what was said so far was the model's reasoning"


@dataclass
class Room:
    """How much a turn may say, in code points; ``most`` 0: no bound. Counts what is beyond it."""

    most: int = 0
    said: int = 0
    beyond: int = 0

    def take(self, text: str) -> str:
        """The part of the text that is within the bound."""
        left = max(0, self.most - self.said) if self.most else len(text)
        kept = text[:left]
        self.said += len(kept)
        self.beyond += len(text) - len(kept)
        return kept

    def take_back(self, said: int = 0, beyond: int = 0) -> None:
        """What was said since then does not count."""
        self.said, self.beyond = said, beyond

    def mark(self) -> str:
        """What ends a text of which some was beyond."""
        return f"…[response truncated at {self.most} chars: +{self.beyond} chars]" if self.beyond else ""

    def cuts(self) -> list[Cut]:
        """What was beyond, as data."""
        detail = f"max_response_chars is {self.most}"
        return [Cut(CutKind.RESPONSE, Unit.CODE_POINTS, self.said, self.beyond, detail)] if self.beyond else []


class Speech:
    """Feed it pieces of text; it gives back what the game is told."""

    def __init__(self, names: Iterable[str], room: Room, *, directive: str = "") -> None:
        self._reasoning = ReasoningFilter()
        self._written = TextCalls(names, directive=directive)
        self._names, self._directive = list(names), directive
        self._room = room
        self._before = (room.said, room.beyond)
        self.text = ""
        self.spoke = False
        """Whether there were words, also where none of them was within the bound."""
        self.calls: list[WireCall] = []
        self.directives: list[WireCall] = []

    @property
    def began(self) -> bool:
        """Whether the game was told anything of it, or a call has come."""
        return bool(self.text or self.calls or self.directives)

    def hear(self, piece: str) -> list[Event]:
        return self._pass_on(self._reasoning.feed(piece))

    def add_native(self, calls: Sequence[WireCall]) -> None:
        """Calls of the wire come first; one that the server left in the text as well is one call."""
        written = [call for call in self.calls if not any(map(call.says_the_same_as, calls))]
        self.calls = [*calls, *written]

    def end(self) -> list[Event]:
        """Nothing more comes."""
        events = self._pass_on(self._reasoning.finish())
        return [*events, *self._say(self._taken(self._written.finish()))]

    def _pass_on(self, shown: Shown) -> list[Event]:
        back: list[Event] = []
        if shown.reset:
            back = [TakenBack(_REASONING)] if self.text else []
            self._written = TextCalls(self._names, directive=self._directive)
            self._room.take_back(*self._before)
            self.text, self.spoke, self.calls, self.directives = "", False, [], []
        return [*back, *self._say(self._taken(self._written.feed(shown.text)))]

    def _taken(self, found: Found) -> str:
        self.calls += found.calls
        self.directives += found.directives
        return found.text

    def _say(self, text: str) -> list[Event]:
        self.spoke = self.spoke or bool(text.strip())
        kept = self._room.take(text)
        if not kept:
            return []
        said = Said(kept, starts_message=not self.text)
        self.text += kept
        return [said]
