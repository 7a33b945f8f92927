"""Conversations of LoCoMo as they lie in its file: turns, and questions with the turns that answer them.

Each turn is a record, a session is a conversation, and all turns of an entry are one owner's. A question counts where
all of its evidence turns exist; the adversarial ones (type 5) are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
DEPTHS = (1, 5, 10, 20)


@dataclass(frozen=True)
class Turn:
    """What somebody said in a session, with the caption of a picture in brackets."""

    turn_id: str
    session: int
    speaker: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question, its type, and the places of the turns that answer it."""

    text: str
    kind: int
    evidence: list[int]


@dataclass(frozen=True)
class Talk:
    """One owner: its turns in order, and what is asked."""

    turns: list[Turn]
    questions: list[Question]


def read(path: Path) -> Iterator[Talk]:
    """The talks of a file. Raises KeyError, TypeError or ValueError for a file of another form."""
    for entry in json.loads(path.read_text("utf-8")):
        turns = list(_turns(entry["conversation"]))
        place = {turn.turn_id: index for index, turn in enumerate(turns)}
        asked = [one for one in entry["qa"] if one["category"] in TYPES and one["evidence"]]
        questions = [
            Question(one["question"], one["category"], [place[turn] for turn in one["evidence"]])
            for one in asked
            if all(turn in place for turn in one["evidence"])
        ]
        yield Talk(turns, questions)


def recall_at(order: Sequence[int], wanted: Sequence[int], k: int) -> float:
    """The share of the wanted places among the first k of an order."""
    first = set(order[:k])
    return sum(place in first for place in wanted) / len(wanted)


def _turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    last = max(int(name.split("_")[1]) for name in conversation if name.startswith("session_"))
    for session in range(1, last + 1):
        for turn in conversation.get(f"session_{session}", []):
            caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield Turn(turn["dia_id"], session, turn["speaker"], turn["text"] + caption)
