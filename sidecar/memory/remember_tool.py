"""``remember_game_memory``: a model keeps one thing as a record of its own, at the moment of the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sidecar.errors import InvalidInput, LorekeeperError, Reason
from sidecar.memory.kept_answers import mark_of_text
from sidecar.memory.moments import Moment
from sidecar.memory.record_checks import checked_record
from sidecar.memory.record_ids import REMEMBER, made_id, random_id
from sidecar.memory.record_store import RecordStore
from sidecar.memory.records import Authority, Kind, Record, RecordHead
from sidecar.memory.tool import ToolAnswer, ToolSpec, refused_answer
from sidecar.memory.tool_arguments import Arguments, now_of
from sidecar.memory.toolbox import ToolCall
from sidecar.settings import RecordSettings
from sidecar.storage.keys import ActorId

_MOST_TEXT = 65_536
_MOST_ID = 512
_MOST_TAGS = 64
#: Kinds that a model may use; the daemon alone writes turns.
KINDS = tuple(kind.value for kind in Kind if kind is not Kind.TURN)


def id_schema(description: str) -> dict[str, Any]:
    """The schema of an id."""
    return {"type": "string", "minLength": 1, "maxLength": _MOST_ID, "description": description}


REMEMBER_TOOL = ToolSpec(
    name=REMEMBER,
    description=(
        "Keep something that happened or that you learnt as a memory of this moment of the game, so that you can "
        "search for it later. Keep one thing at a time, in a few plain words, with what makes it worth remembering."
    ),
    parameters={
        "type": "object",
        "properties": {
            "scope": id_schema("A short label that groups memories, such as personal or relationship."),
            "kind": {"type": "string", "enum": list(KINDS), "description": "What kind of memory it is."},
            "payload": {"description": "What to remember: any JSON value."},
            "memoryId": id_schema("An id of your own; leave it out to have one made."),
            "importance": {"type": "number", "minimum": 0, "maximum": 1, "description": "How much it matters; 0.5."},
            "searchableText": {
                "type": "string",
                "maxLength": _MOST_TEXT,
                "description": "The words by which it should be found, besides those of the payload.",
            },
            "tags": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": _MOST_ID},
                "maxItems": _MOST_TAGS,
                "uniqueItems": True,
                "description": "Labels to filter by.",
            },
            "expiresAtTick": {"type": "integer", "description": "The tick from which on it is not true any more."},
        },
        "required": ["scope", "kind", "payload"],
        "additionalProperties": False,
    },
)


class RememberTool:
    """Adds a record of the actor, its id made from the place of the call so that a repeat changes nothing."""

    spec = REMEMBER_TOOL
    mutating = True

    def __init__(self, store: RecordStore, limits: RecordSettings, offers: Callable[[str, str], bool]) -> None:
        """``offers`` tells whether a role id has a tool, by its name."""
        self._store = store
        self._limits = limits
        self._offers = offers

    def offered(self, who: ActorId) -> bool:
        return self._offers(who.role, REMEMBER)

    def call(self, who: ActorId, call: ToolCall) -> ToolAnswer:
        now = now_of(call.moment, REMEMBER)
        try:
            record = checked_record(_record(who, call, now), "record", self._limits)
            self._store.add(who.save, [(who, record)], field="memoryId", asked=_mark(who, call))
        except LorekeeperError as error:
            return refused_answer(error)
        record_id = record.head.record_id
        answer = {"memoryId": record_id, "ownerId": who.actor, "timelineId": now.timeline, "tick": now.tick}
        return ToolAnswer(answer, True, record_id=record_id)


def _record(who: ActorId, call: ToolCall, now: Moment) -> Record:
    arguments = Arguments(call.arguments_json, REMEMBER_TOOL.parameters["properties"])
    expires = arguments.whole("expiresAtTick", now.tick)
    if expires < now.tick:
        raise InvalidInput(
            f"expiresAtTick lies before now; it is tick {now.tick} now",
            reason=Reason.FIELD_INVALID,
            field="expiresAtTick",
        )
    head = RecordHead(
        record_id=arguments.text("memoryId", "", most=_MOST_ID).strip() or _made(who, call, now),
        scope=arguments.text("scope", most=_MOST_ID),
        kind=kind_of(arguments.text("kind", most=_MOST_ID)),
        moment=now,
        importance=arguments.number("importance", 0.5),
        tags=arguments.texts("tags", most=_MOST_TAGS),
        expires=Moment(now.timeline, expires) if arguments.given("expiresAtTick") else None,
        source_input_id=call.input_id,
        authority=Authority.MODEL,
    )
    return Record(head, arguments.value_text("payload"), arguments.text("searchableText", "", most=_MOST_TEXT))


def _made(who: ActorId, call: ToolCall, now: Moment) -> str:
    source = call.input_id or call.idempotency_key
    if not source:
        return random_id()
    return made_id(who, source, now, turn=call.turn, place=call.call_index, tool=REMEMBER)


def _mark(who: ActorId, call: ToolCall) -> str:
    """What tells a call with an idempotency key from every other."""
    parts = (call.idempotency_key, call.input_id, str(call.turn), str(call.call_index), call.arguments_json)
    return mark_of_text(who.save, "\n".join(parts)) if call.idempotency_key else ""


def kind_of(name: str) -> Kind:
    """The kind that a model means. Raises InvalidInput."""
    if name not in KINDS:
        raise InvalidInput(f"kind must be one of {', '.join(KINDS)}", reason=Reason.FIELD_INVALID, field="kind")
    return Kind(name)
