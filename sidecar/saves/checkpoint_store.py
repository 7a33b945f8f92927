"""Checkpoints on the disk: made beside and renamed when they are whole, read from their own files, verified before use.

Calls for one save are made one at a time by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sidecar.errors import Corrupt, LimitReached, LorekeeperError, NotFound, NotReady, Reason
from sidecar.saves.checkpoint import (
    UNKNOWN,
    Checkpoint,
    Kind,
    Wish,
    checkpoint_from_json,
    checkpoint_to_json,
    is_id,
    method_of,
    new_id,
)
from sidecar.saves.layout import CHECKPOINT_FILE, FILES, Layout
from sidecar.saves.record_count import records_in
from sidecar.settings import SavesSettings
from sidecar.storage.actors import folders_of_actors
from sidecar.storage.cloning import Measured
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.json_file import read_json, unreadable, write_json
from sidecar.storage.save_state import SaveState


class CheckpointStore:
    """The checkpoints of all saves of one data folder."""

    def __init__(self, disk: Disk, layout: Layout, limits: SavesSettings, *, clock: Callable[[], int]) -> None:
        """``clock`` gives Unix nanoseconds."""
        self._disk = disk
        self._layout = layout
        self._limits = limits
        self._clock = clock

    def describe(
        self, save: str, wish: Wish, state: SaveState, measured: Measured, *, actors: int, records: int
    ) -> Checkpoint:
        """A new checkpoint, not on the disk yet. Raises LimitReached where the save has too many."""
        names = self.ids(save)
        if wish.kind is not Kind.SAFETY and len(names) >= self._limits.max_checkpoints:
            raise LimitReached(
                f"the save has {len(names)} checkpoints, as many as the limit allows; delete some first",
                reason=Reason.TOO_MANY_CHECKPOINTS,
                limit="saves.max_checkpoints",
                value=self._limits.max_checkpoints,
            )
        now = self._clock()
        return Checkpoint(
            checkpoint_id=new_id(now, names[-1] if names else ""),
            save=save,
            wish=wish,
            created=now / 1_000_000_000,
            state=state,
            method=method_of(measured),
            actors=actors,
            records=records,
            files=measured.files,
            bytes=measured.bytes,
        )

    def create(self, save: str, describe: Callable[[Measured], Checkpoint]) -> Checkpoint:
        """Keep the save's folder as it is now; ``describe`` tells, once its files are counted, what is kept."""
        partial = self._layout.workplace()
        self._disk.make_folder(partial)
        self._disk.make_folder(self._layout.checkpoints(save))
        try:
            checkpoint = describe(self._disk.clone(self._layout.live(save), partial / FILES))
            write_json(self._disk, partial / CHECKPOINT_FILE, checkpoint_to_json(checkpoint))
            self._disk.rename(partial, self._layout.checkpoint(save, checkpoint.checkpoint_id))
        except BaseException:
            self._disk.remove(partial)
            raise
        return checkpoint

    def of_save(self, save: str) -> Iterator[Checkpoint]:
        """The checkpoints of a save, newest first; one that cannot be read is left out."""
        for name in reversed(self.ids(save)):
            try:
                yield self._read(save, name)
            except LorekeeperError:
                continue

    def ids(self, save: str) -> list[str]:
        """The ids of all checkpoints of a save, oldest first, also of those that cannot be read."""
        return [name for name in self._disk.names(self._layout.checkpoints(save)) if is_id(name)]

    def get(self, save: str, checkpoint_id: str) -> Checkpoint:
        """One checkpoint. Raises NotFound, NotReady for that of another save, Corrupt."""
        if is_id(checkpoint_id) and self._disk.exists(self._layout.checkpoint(save, checkpoint_id)):
            return self._read(save, checkpoint_id)
        if is_id(checkpoint_id) and self._of_other_save(checkpoint_id):
            raise NotReady(
                "the checkpoint belongs to another save; fork that save from it instead",
                reason=Reason.CHECKPOINT_OF_OTHER_SAVE,
                field="checkpoint_id",
            )
        raise NotFound(
            "the save has no such checkpoint; list them to see which there are",
            reason=Reason.CHECKPOINT_NOT_FOUND,
            field="checkpoint_id",
        )

    def take(self, checkpoint: Checkpoint, target: Path) -> Measured:
        """Make ``target`` hold the files of a checkpoint. Raises Corrupt where they are not those that were kept."""
        try:
            measured = self._disk.clone(self.files(checkpoint.save, checkpoint.checkpoint_id), target)
        except FileNotFoundError as error:
            raise self._damaged(checkpoint) from error
        if not checkpoint.holds(measured):
            raise self._damaged(checkpoint)
        return measured

    def files(self, save: str, checkpoint_id: str) -> Path:
        """The folder of what a checkpoint holds."""
        return self._layout.checkpoint(save, checkpoint_id) / FILES

    def delete(self, save: str, checkpoint_id: str) -> int | None:
        """Set a checkpoint aside; the bytes that the disk gets back, None where there is none."""
        folder = self._layout.checkpoint(save, checkpoint_id)
        if not is_id(checkpoint_id) or not self._disk.exists(folder):
            return None
        freed = self._disk.measure(folder).own_bytes
        self._layout.set_aside(self._disk, folder)
        return freed

    @contextmanager
    def rewriting(self, save: str, checkpoint_id: str) -> Iterator[None]:
        """Erase something from the files of a checkpoint; what is told of it is right again afterwards."""
        try:
            checkpoint = self._read(save, checkpoint_id)
        except LorekeeperError:
            yield  # nothing is told of it: nobody can restore it
            return
        self._write(replace(checkpoint, rewritten=True, files=UNKNOWN))
        yield
        files = self.files(save, checkpoint_id)
        measured = self._disk.measure(files)
        actors = len(folders_of_actors(self._disk, files))
        self._write(
            replace(
                checkpoint,
                rewritten=True,
                actors=actors,
                records=records_in(self._disk, files),
                files=measured.files,
                bytes=measured.bytes,
            )
        )

    def half_rewritten(self, save: str, checkpoint_id: str) -> bool:
        """Whether :meth:`rewriting` was broken off: what is told of the checkpoint is not right yet."""
        try:
            checkpoint = self._read(save, checkpoint_id)
        except LorekeeperError:
            return False
        return checkpoint.rewritten and checkpoint.files == UNKNOWN

    def surplus(self, save: str, kind: Kind, count: int) -> list[str]:
        """The ids of the older checkpoints of a kind, beyond the newest ``count``."""
        of_kind = [checkpoint.checkpoint_id for checkpoint in self.of_save(save) if checkpoint.wish.kind is kind]
        return of_kind[count:]

    def _write(self, checkpoint: Checkpoint) -> None:
        folder = self._layout.checkpoint(checkpoint.save, checkpoint.checkpoint_id)
        write_json(self._disk, folder / CHECKPOINT_FILE, checkpoint_to_json(checkpoint))

    def _read(self, save: str, name: str) -> Checkpoint:
        path = self._layout.checkpoint(save, name) / CHECKPOINT_FILE
        try:
            return checkpoint_from_json(read_json(self._disk, path) or {})
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(self._disk, path, "use another checkpoint") from error

    def _of_other_save(self, checkpoint_id: str) -> bool:
        root = self._layout.all_checkpoints
        return any(self._disk.exists(root / name / checkpoint_id) for name in self._disk.names(root))

    def _damaged(self, checkpoint: Checkpoint) -> Corrupt:
        shown = shown_path(self._disk, self.files(checkpoint.save, checkpoint.checkpoint_id))
        return Corrupt(
            f"files in '{shown}' are missing or changed; the save was left as it was, use another checkpoint",
            reason=Reason.CHECKPOINT_DAMAGED,
            file=shown,
        )
