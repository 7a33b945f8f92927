"""What a new record must be like: every limit of its fields, checked once, at the edge.

A record that passes is safe to store: its ids are trimmed, its tags sorted, its JSON is valid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sidecar.bounds import Bound, require_count, require_length
from sidecar.errors import InvalidInput, Reason
from sidecar.memory.canonical_json import parse
from sidecar.memory.moments import Moment, checked_moment
from sidecar.memory.records import Kind, Record, RecordHead, Share
from sidecar.settings import RecordSettings
from sidecar.storage.keys import checked_id, ordinal


def checked_record(record: Record, field: str, limits: RecordSettings) -> Record:
    """``record`` as it will be stored. ``field`` is its path in the request, such as ``records[3]``.

    Raises InvalidInput that names the field, and the limit where there is one.
    """
    longest = Bound("records.max_payload_chars", limits.max_payload_chars)
    parse(checked_text(record.payload, f"{field}.payload_json", longest), f"{field}.payload_json")
    head = _checked_head(record.head, field, limits)
    return Record(
        head=head,
        payload=record.payload,
        text=checked_text(record.text, f"{field}.searchable_text", text_bound(limits)),
        metadata=_checked_metadata(record.metadata, f"{field}.metadata", limits),
        shares=checked_shares(record.shares, head.moment, f"{field}.shares", limits),
    )


def text_bound(limits: RecordSettings) -> Bound:
    """How long a text that is searched, or looked for, may be."""
    return Bound("records.max_text_chars", limits.max_text_chars)


def _checked_head(head: RecordHead, field: str, limits: RecordSettings) -> RecordHead:
    if head.kind is Kind.TURN:
        raise _invalid(f"{field}.kind", "is TURN, which only the daemon writes")
    moment = checked_moment(head.moment, f"{field}.moment")
    return replace(
        head,
        record_id=checked_id(head.record_id, f"{field}.record_id"),
        scope=required_id(head.scope, f"{field}.scope"),
        moment=moment,
        importance=checked_share_of_one(head.importance, f"{field}.importance"),
        tags=checked_ids(head.tags, f"{field}.tags", Bound("records.max_tags", limits.max_tags)),
        expires=_checked_expiry(head.expires, moment, f"{field}.expires_at"),
        source_input_id=checked_id(head.source_input_id, f"{field}.source_input_id"),
        conversation_id=checked_id(head.conversation_id, f"{field}.conversation_id"),
        audience=checked_ids(head.audience, f"{field}.audience", Bound("records.max_audience", limits.max_audience)),
        speaker=checked_id(head.speaker, f"{field}.speaker"),
    )


def checked_ids(values: Iterable[str], field: str, bound: Bound) -> tuple[str, ...]:
    """Ids trimmed, each once, sorted; counted after that."""
    ids = {required_id(value, f"{field}[{number}]") for number, value in enumerate(values)}
    require_count(len(ids), field, bound)
    return tuple(sorted(ids, key=ordinal))


def required_id(value: str, field: str) -> str:
    """``value`` trimmed; InvalidInput where it is blank, too long, or has control characters."""
    value = checked_id(value, field)
    if not value:
        raise InvalidInput(f"{field} is required", reason=Reason.FIELD_REQUIRED, field=field)
    return value


def checked_text(value: str, field: str, bound: Bound) -> str:
    """``value`` as it is; InvalidInput where it has more code points than are allowed, or lone surrogates."""
    require_length(value, field, bound)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _invalid(field, "has a lone surrogate; send valid Unicode") from None
    return value


def checked_share_of_one(value: float, field: str) -> float:
    """A finite number from 0 to 1."""
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise _invalid(field, "must be a number from 0 to 1")
    return float(value) + 0.0  # never -0.0


def checked_shares(shares: Iterable[Share], moment: Moment, field: str, limits: RecordSettings) -> tuple[Share, ...]:
    """Shares on the record's timeline and not before it."""
    checked = tuple(_checked_share(share, moment, f"{field}[{number}]") for number, share in enumerate(shares))
    require_count(len(checked), field, Bound("records.max_shares", limits.max_shares))
    return checked


def _checked_share(share: Share, moment: Moment, field: str) -> Share:
    since = checked_moment(share.moment, f"{field}.moment")
    if not moment.not_after(since):
        raise _invalid(f"{field}.moment", "must lie on the record's timeline and not before the record")
    return replace(share, moment=since, confidence=checked_share_of_one(share.confidence, f"{field}.confidence"))


def _checked_expiry(expires: Moment | None, moment: Moment, field: str) -> Moment | None:
    if expires is None:
        return None
    expires = checked_moment(expires, field)
    if not moment.not_after(expires):
        raise _invalid(field, "must lie on the record's timeline and not before the record")
    return expires


def _checked_metadata(metadata: Mapping[str, str], field: str, limits: RecordSettings) -> dict[str, str]:
    require_count(len(metadata), field, Bound("records.max_metadata", limits.max_metadata))
    longest_key = Bound("records.max_metadata_key_chars", limits.max_metadata_key_chars)
    longest_value = Bound("records.max_metadata_value_chars", limits.max_metadata_value_chars)
    for name, value in metadata.items():
        if not name.strip():
            raise _invalid(field, "has a blank key")
        checked_text(name, field, longest_key)
        checked_text(value, field, longest_value)
    return dict(sorted(metadata.items()))


def _invalid(field: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{field} {problem}", reason=Reason.FIELD_INVALID, field=field)
