"""Which records are meant: one rule for listing, forgetting and searching."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sidecar.bounds import Bound
from sidecar.errors import InvalidInput, Reason
from sidecar.memory.moments import Moment, checked_moment
from sidecar.memory.record_checks import checked_ids, checked_share_of_one, checked_text, text_bound
from sidecar.memory.records import Authority, Kind, RecordHead
from sidecar.settings import RecordSettings
from sidecar.storage.keys import checked_id

_ALL_BUT_TURNS = frozenset(Kind) - {Kind.TURN}


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Empty parts let everything pass; tags must all be there, of the other sets one is enough.

    Without ``at_or_before`` records of every timeline pass, but none that ever expires: nobody can tell whether it has.
    With it a record that was superseded later passes, as it was known then.
    """

    scopes: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = frozenset()
    tags: frozenset[str] = frozenset()
    at_or_before: Moment | None = None
    at_or_after: Moment | None = None
    include_expired: bool = False
    include_superseded: bool = False
    minimum_importance: float = 0.0
    conversation_id: str = ""
    source_input_id: str = ""
    authorities: frozenset[Authority] = frozenset()
    text: str = ""

    def passes(self, head: RecordHead, *, superseded_since: int | None) -> bool:
        """Whether a record is meant, all but its ``text`` considered. ``superseded_since``: the tick, if it was."""
        return (
            self._in_time(head)
            and (superseded_since is None or self.include_superseded or self._is_before(superseded_since))
            and head.importance >= self.minimum_importance
            and (not self.kinds or head.kind in self.kinds)
            and (not self.scopes or head.scope in self.scopes)
            and (not self.tags or self.tags.issubset(head.tags))
            and (not self.conversation_id or head.conversation_id == self.conversation_id)
            and (not self.source_input_id or head.source_input_id == self.source_input_id)
            and (not self.authorities or head.authority in self.authorities)
        )

    def holds_text(self, searched: str) -> bool:
        """Whether the searched text of a record holds the filter's text, in any case."""
        return self.text.casefold() in searched.casefold()

    def _is_before(self, tick: int) -> bool:
        return self.at_or_before is not None and self.at_or_before.tick < tick

    def _in_time(self, head: RecordHead) -> bool:
        if self.at_or_after and not self.at_or_after.not_after(head.moment):
            return False
        now = self.at_or_before
        if now and not head.moment.not_after(now):
            return False
        if head.expires is None or self.include_expired:
            return True
        return now is not None and now.tick < head.expires.tick


def checked_filter(wanted: RecordFilter, field: str, limits: RecordSettings) -> RecordFilter:
    """``wanted`` with its ids trimmed. Raises InvalidInput that names the field at fault."""
    before, after = wanted.at_or_before, wanted.at_or_after
    before = checked_moment(before, f"{field}.at_or_before") if before else None
    after = checked_moment(after, f"{field}.at_or_after") if after else None
    if before and after and before.timeline != after.timeline:
        raise InvalidInput(
            f"{field}.at_or_after lies on another timeline than {field}.at_or_before",
            reason=Reason.FIELD_INVALID,
            field=f"{field}.at_or_after",
        )
    items = Bound("records.max_filter_items", limits.max_filter_items)
    return replace(
        wanted,
        scopes=frozenset(checked_ids(wanted.scopes, f"{field}.scopes", items)),
        tags=frozenset(checked_ids(wanted.tags, f"{field}.tags", items)),
        at_or_before=before,
        at_or_after=after,
        minimum_importance=checked_share_of_one(wanted.minimum_importance, f"{field}.minimum_importance"),
        conversation_id=checked_id(wanted.conversation_id, f"{field}.conversation_id"),
        source_input_id=checked_id(wanted.source_input_id, f"{field}.source_input_id"),
        text=checked_text(wanted.text, f"{field}.text", text_bound(limits)),
    )


def without_archive(wanted: RecordFilter) -> RecordFilter:
    """The filter that leaves turns of chats out, unless it names nothing but them."""
    kinds = wanted.kinds - {Kind.TURN} if wanted.kinds else _ALL_BUT_TURNS
    return replace(wanted, kinds=kinds) if kinds else wanted
