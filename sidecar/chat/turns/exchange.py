"""What a turn has sent and heard so far, as the next request repeats it. No I/O.

The prompt stays; each round adds the model's words with its calls, and their results. Where a round leaves too many
results, the oldest rounds go as a whole: a call is never sent without its result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.chat.backends.wire import ASSISTANT, TOOL, USER, WireCall, WireMessage

FINAL_REQUEST = "Answer now in plain words, without calling any tool: say what was done and what could not be done."
REPAIR_REQUEST = "Your answer does not keep to the JSON schema. Send the whole answer again as JSON that does. Errors: "


@dataclass(frozen=True)
class Round:
    """One answer with calls, and what the model is told of each."""

    text: str
    calls: tuple[WireCall, ...]
    results: tuple[str, ...]

    def messages(self, *, native: bool) -> list[WireMessage]:
        """As the wire carries calls, or as text for a model that knows only text."""
        if native:
            answers = [
                WireMessage(TOOL, result, call_id=call.call_id)
                for call, result in zip(self.calls, self.results, strict=True)
            ]
            return [WireMessage(ASSISTANT, self.text, self.calls), *answers]
        said = "\n".join(part for part in (self.text.strip(), *map(_written, self.calls)) if part)
        told = "\n".join(
            f"Result of {call.name}: {result}" for call, result in zip(self.calls, self.results, strict=True)
        )
        return [WireMessage(ASSISTANT, said), WireMessage(USER, told)]


def trimmed(rounds: Sequence[Round], most: int) -> tuple[list[Round], int]:
    """The newest rounds with at most ``most`` results in all, the last one always whole; how many results went.

    ``most`` 0 keeps all.
    """
    kept: list[Round] = []
    count = 0
    for one in reversed(rounds):
        count += len(one.results)
        if kept and most and count > most:
            break
        kept.insert(0, one)
    gone = sum(len(one.results) for one in rounds) - sum(len(one.results) for one in kept)
    return kept, gone


def _written(call: WireCall) -> str:
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = call.arguments
    return json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False)
