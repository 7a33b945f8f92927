"""``inspect records``: what an actor remembers, read from its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sidecar.cli.inspect_options import actor_options
from sidecar.cli.options import as_json, data_dir
from sidecar.cli.tables import show
from sidecar.memory.open_saves import NothingKnown
from sidecar.memory.record_store import RecordStore, Stored
from sidecar.settings import RecordSettings
from sidecar.storage.actors import Actors
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.keys import ActorId, actor_id
from sidecar.storage.save_state import SaveStates


class _UntouchedDisk(FileDisk):
    """A daemon may be writing: the half-written end of a journal is passed over, and never cut off."""

    def truncate(self, path: Path, length: int) -> None:
        """Leave the file as it is."""


@click.command()
@data_dir
@as_json
@actor_options
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="The newest so many.")
def records(data_dir: Path, as_json: bool, limit: int, **parts: str) -> None:
    """List an actor's records, the newest in game time first."""
    if not data_dir.is_dir():
        raise click.ClickException(f"there is no data folder at {data_dir}")
    found = _newest(_store(data_dir), actor_id(**parts), limit)
    show(found, as_json, "This actor has no records.")


def _store(root: Path) -> RecordStore:
    disk = _UntouchedDisk(root)
    return RecordStore(
        disk,
        Actors(disk),
        SaveStates(disk),
        RecordSettings(),
        known=NothingKnown(),
        retention=lambda _: None,
        report=lambda _: None,
    )


def _newest(store: RecordStore, who: ActorId, limit: int) -> list[dict[str, Any]]:
    with store.opened(who) as owner:
        entries = sorted(owner.records().entries.values(), key=lambda entry: -entry.head.moment.tick)
        return [_row(stored) for stored in store.stored_many(owner, entries[:limit])]


def _row(stored: Stored) -> dict[str, Any]:
    head = stored.record.head
    return {
        "record": head.record_id,
        "moment": f"{head.moment.timeline}/{head.moment.tick}" if head.moment.dated else "",
        "kind": head.kind.value,
        "scope": head.scope,
        "importance": head.importance,
        "tags": " ".join(head.tags),
        "state": "superseded" if stored.entry.superseded_by else "",
        "text": stored.record.text or stored.record.payload,
    }
