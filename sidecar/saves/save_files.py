"""What can be done with a save as a whole: keep it, put it back, fork it, erase it, tell how much it is.

Every call comes from a thread, for a save that stands still or that nobody else uses; ``service.py`` sees to that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sidecar.errors import AlreadyExists, InvalidInput, LorekeeperError, NotFound, Reason, Stale
from sidecar.memory.moments import Moment
from sidecar.saves.checkpoint import Checkpoint, Kind, Method, Wish, method_of
from sidecar.saves.checkpoint_store import CheckpointStore
from sidecar.saves.exchange import Exchanges
from sidecar.saves.latest import LatestMoments
from sidecar.saves.layout import SAVE_FILE, Layout
from sidecar.saves.parts import SaveParts
from sidecar.saves.save_settings import SaveSettingsStore
from sidecar.settings import SavesSettings
from sidecar.storage.actors import Actors, folders_of_actors
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import read_json, stored_number, write_json
from sidecar.storage.keys import is_save_folder, ordinal
from sidecar.storage.save_state import SaveAbout, SaveState, SaveStates, save_to_json, stored_about
from sidecar.storage.timelines import forked, read_as


@dataclass(frozen=True, slots=True)
class SaveFacts:
    """A save at a glance. Times in Unix seconds, 0 where unknown; ``readable`` is False where its file is not."""

    save: str
    state: SaveState = field(default_factory=SaveState)
    name: str = ""
    actors: int = 0
    records: int = 0
    checkpoints: int = 0
    bytes: int = 0
    created: float = 0.0
    updated: float = 0.0
    forked_from: str = ""
    latest: tuple[Moment, ...] = ()
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Fork:
    """What a fork is to be. Empty timelines: it goes on on the one it was on. ``key`` and ``request`` are hashes for a
    retry, empty without one."""

    source: str
    checkpoint_id: str
    save: str
    name: str = ""
    new_timeline: str = ""
    old_timeline: str = ""
    key: str = ""
    request: str = ""


class SaveFiles:
    """All saves of one data folder."""

    def __init__(
        self,
        disk: Disk,
        actors: Actors,
        states: SaveStates,
        settings: SaveSettingsStore,
        parts: SaveParts,
        limits: SavesSettings,
        *,
        clock: Callable[[], float] = time.time,
        hold: Callable[[str, Callable[[], None]], None] = lambda save, settle: None,
    ) -> None:
        """``hold`` is told a save that nobody may use until what it is given has been called without an error."""
        self._hold = hold
        self._disk = disk
        self._actors = actors
        self._states = states
        self._settings = settings
        self._parts = parts
        self._limits = limits
        self._clock = clock
        self._latest = LatestMoments(disk, lambda save: states.about(save).timelines)
        self._counted_at: dict[str, tuple[SaveState, int]] = {}
        self.layout = Layout(disk.root)
        self.exchanges = Exchanges(disk, self.layout)
        self.checkpoints = CheckpointStore(disk, self.layout, limits, clock=lambda: int(clock() * 1_000_000_000))

    def exists(self, save: str) -> bool:
        """Whether anything was ever stored in the save."""
        return self._disk.exists(self.layout.live(save) / SAVE_FILE)

    def require(self, save: str) -> None:
        """Raise NotFound for a save that does not exist."""
        if not self.exists(save):
            raise NotFound(
                "there is no such save; list the saves to see which there are",
                reason=Reason.SAVE_NOT_FOUND,
                field="save_id",
            )

    def saves(self) -> Iterator[str]:
        """The ids of all saves, sorted; of one that cannot be read, the name of its folder."""
        root = self.layout.root / "saves"
        found = (self._id_in(root / name) for name in self._disk.names(root) if is_save_folder(name))
        return iter(sorted(filter(None, found), key=ordinal))

    def facts(self, save: str) -> SaveFacts:
        """How much the save is now; all 0 for one that does not exist."""
        live = self.layout.live(save)
        try:
            state, about, name = self._states.state(save), self._states.about(save), self._settings.name(save)
            counted = self._parts.counted(save)
        except LorekeeperError:
            return SaveFacts(save, readable=False)
        measured = self._disk.measure(live)
        return SaveFacts(
            save=save,
            state=state,
            name=name,
            actors=counted.get("actors", 0),
            records=counted.get("records", 0),
            checkpoints=len(self.checkpoints.ids(save)),
            bytes=measured.bytes,
            created=about.created,
            updated=measured.newest,
            forked_from=about.forked_from,
            latest=tuple(self.latest(save)),
        )

    def latest(self, save: str) -> list[Moment]:
        """The latest moment of each timeline that the save knows."""
        return self._latest.of(save, self.layout.live(save))

    def last_state(self, save: str) -> SaveState:
        """The state of the save; where its own file cannot be read, one that is later than that of any checkpoint."""
        try:
            return self._states.state(save)
        except LorekeeperError:
            kept = [checkpoint.state for checkpoint in self.checkpoints.of_save(save)]
            revision = max((state.revision for state in kept), default=0)
            return SaveState(revision, 1 + max((state.epoch for state in kept), default=0))

    def checkpoint(self, save: str, wish: Wish) -> Checkpoint:
        """Keep the save as it is; one that holds nothing is made. Raises LimitReached, Corrupt, and NotFound for one
        whose folder was removed under the daemon."""
        self._states.ensure(save)
        self.require(save)
        self._parts.quiet(save)
        return self.checkpoints.create(
            save,
            lambda measured: self.checkpoints.describe(
                save, wish, self._states.state(save), measured, **self._counts(save)
            ),
        )

    def restore(
        self, save: str, checkpoint_id: str, wish: Wish, *, expected_epoch: int | None = None
    ) -> tuple[Checkpoint, Checkpoint | None]:
        """Make the save what it was; the checkpoint, and what the save was before (None: its folder was gone). Raises
        Stale, NotFound, NotReady, Corrupt."""
        checkpoint, state = self.restorable(save, checkpoint_id, expected_epoch=expected_epoch)
        safety = self.exchange(save, lambda staged: self._take(checkpoint, staged, state), wish)
        return checkpoint, safety

    def restorable(
        self, save: str, checkpoint_id: str, *, expected_epoch: int | None = None
    ) -> tuple[Checkpoint, SaveState]:
        """What a restore would bring back, and where the save stands now. Raises Stale, NotFound, Corrupt."""
        checkpoint = self.checkpoints.get(save, checkpoint_id)
        state = self.last_state(save)
        if expected_epoch is not None and expected_epoch != state.epoch:
            raise Stale(
                f"the save is in epoch {state.epoch}, not {expected_epoch}: it was restored since",
                reason=Reason.EPOCH_MISMATCH,
                field="expected_epoch",
                current_epoch=state.epoch,
            )
        return checkpoint, state

    def exchange(self, save: str, prepare: Callable[[Path], None], wish: Wish | None) -> Checkpoint | None:
        """Put what ``prepare`` makes in the place of the save. What it was is kept as ``wish`` says, or not (None)."""
        staged = self.exchanges.begin(save)
        try:
            self._settle_if_readable(save)
            prepare(staged)
            safety = self._safety(save, wish) if wish is not None and self.exists(save) else None
            self._put(save, safety)
        except BaseException:
            self.exchanges.cancel(save)
            raise
        with suppress(LorekeeperError):  # the exchange has happened: it is no failure that an old safety stays
            self.keep_newest(save, Kind.SAFETY, self._limits.kept_safety_checkpoints)
        return safety

    def _put(self, save: str, safety: Checkpoint | None) -> None:
        """What is in memory is forgotten from here on only: it may be all there is of a save that stays as it was."""
        try:
            self._parts.exchanged(save)
            self.exchanges.put(save, safety=safety)
        finally:
            self._forget(save)
            if self.exchanges.unsettled(save):
                self._hold(save, partial(self._settle_exchange, save))

    def _settle_exchange(self, save: str) -> None:
        self.exchanges.settle(save)
        self._forget(save)

    def keep_newest(self, save: str, kind: Kind, count: int) -> None:
        """Set the older checkpoints of a kind aside; :meth:`sweep` removes them."""
        for surplus in self.checkpoints.surplus(save, kind, count):
            self.layout.set_aside(self._disk, self.layout.checkpoint(save, surplus))

    def sweep(self) -> None:
        """Remove what was set aside; nobody need wait for it."""
        self.layout.sweep(self._disk)

    def fork(self, fork: Fork) -> Method:
        """Make a new save, unless this very call made it before a kill. Raises AlreadyExists, NotFound, NotReady,
        Corrupt."""
        if (method := self.forked(fork)) is not None:
            return method
        methods: list[Method] = []
        self.exchange(fork.save, lambda staged: methods.append(self._fork_into(staged, fork)), None)
        return methods[0]

    def forked(self, fork: Fork) -> Method | None:
        """How this very call made the save before a kill; None where it can be made now. Raises AlreadyExists,
        NotFound."""
        if (method := self._forked_before(fork)) is not None:
            return method
        if self.exists(fork.save):
            raise AlreadyExists(
                "new_save_id names a save that exists; choose another id or erase that save first",
                reason=Reason.SAVE_EXISTS,
                field="new_save_id",
            )
        self.require(fork.source)
        return None

    def snapshot(self, save: str, checkpoint_id: str, target: Path) -> Checkpoint | None:
        """Make ``target`` hold what the save is now, or was at a checkpoint (which is returned). Raises NotFound,
        Corrupt."""
        if checkpoint_id:
            checkpoint = self.checkpoints.get(save, checkpoint_id)
            self.checkpoints.take(checkpoint, target)
            return checkpoint
        self._parts.quiet(save)
        self._disk.clone(self.layout.live(save), target)
        return None

    def erase(self, save: str, *, dry_run: bool = False) -> dict[str, int] | None:
        """Forget the save and its checkpoints; what was, or would be, removed, and None where there is nothing."""
        doomed = [self.layout.live(save), self.layout.checkpoints(save), *self.copies(save)]
        if not any(map(self._disk.exists, doomed)):
            return None
        self._settle_if_readable(save)
        removed = self._counted(save) | {
            "actors": self._actor_count(self.layout.live(save)),
            "checkpoints_deleted": len(self.checkpoints.ids(save)),
            "bytes": self._disk.measure(*doomed).own_bytes,
        }
        if not dry_run:
            self._parts.erased(save)
            for folder in (*doomed, *self.layout.exports(self._disk, save)):
                self.layout.set_aside(self._disk, folder)
            self.sweep()
            self._forget(save)
            self._parts.erased(save)
        return removed

    def copies(self, save: str) -> list[Path]:
        """Where else files of the save lie: what repair kept, backups of older formats, a cloud drive's copies."""
        root, backups = self.layout.root, self.layout.root / "backups"
        places = [root / "repaired", *(backups / name for name in self._disk.names(backups))]
        own = (self.layout.live(save), self.layout.checkpoints(save))
        kept = [place / folder.relative_to(root) for place in places for folder in own]
        return [*filter(self._disk.exists, kept), *(copy for folder in own for copy in self._beside(folder))]

    def _beside(self, folder: Path) -> Iterator[Path]:
        """What a cloud drive that met two versions of a folder has put beside it, under a longer name."""
        for name in self._disk.names(folder.parent):
            if name.startswith(folder.name) and name != folder.name:
                yield folder.with_name(name)

    def _take(self, checkpoint: Checkpoint, staged: Path, now: SaveState) -> None:
        self.checkpoints.take(checkpoint, staged)
        path = staged / SAVE_FILE
        about = stored_about(self._disk, path, read_json(self._disk, path) or {})
        self.stamp(staged, checkpoint.save, SaveState(now.revision + 1, now.epoch + 1), about)

    def _forked_before(self, fork: Fork) -> Method | None:
        made = self._states.about(fork.save).forked_by if fork.key else {}
        same = (made.get("key"), made.get("request")) == (fork.key, fork.request)
        return Method(made["method"]) if same else None

    def _fork_into(self, staged: Path, fork: Fork) -> Method:
        if fork.checkpoint_id:
            measured = self.checkpoints.take(self.checkpoints.get(fork.source, fork.checkpoint_id), staged)
        else:
            self._states.state(fork.source)  # which tells by its own name that a save.json is damaged
            self._parts.quiet(fork.source)
            measured = self._disk.clone(self.layout.live(fork.source), staged)
        path = staged / SAVE_FILE
        stored = {"revision": 0, **(read_json(self._disk, path) or {})}
        state = SaveState(stored_number(self._disk, path, stored, "revision"))
        about = stored_about(self._disk, path, stored)
        timelines = forked(about.timelines, old=fork.old_timeline, new=fork.new_timeline)
        _require_own(timelines, fork.new_timeline)
        method = method_of(measured)
        made = {"key": fork.key, "request": fork.request, "method": method.value} if fork.key else {}
        self.stamp(staged, fork.save, state, SaveAbout(self._clock(), fork.source, timelines, made))
        if fork.name:
            self._settings.rename(staged, fork.name)
        return method

    def stamp(self, staged: Path, save: str, state: SaveState, about: SaveAbout) -> None:
        """Write whose files these are to be."""
        write_json(self._disk, staged / SAVE_FILE, save_to_json(save, state, about))

    def _safety(self, save: str, wish: Wish) -> Checkpoint:
        measured = self._disk.measure(self.layout.live(save))
        return self.checkpoints.describe(save, wish, self.last_state(save), measured, **self._counts(save))

    def _settle_if_readable(self, save: str) -> None:
        """A save that is damaged may be replaced or erased: that is the way out."""
        with suppress(LorekeeperError):
            self._parts.quiet(save)

    def _counts(self, save: str) -> dict[str, int]:
        return {
            "actors": self._actor_count(self.layout.live(save)),
            "records": self._records(save),
        }

    def _records(self, save: str) -> int:
        """Counted once for each state of the save."""
        state = self.last_state(save)
        known = self._counted_at.get(save)
        if known is None or known[0] != state:
            known = self._counted_at[save] = state, self._counted(save).get("records", 0)
        return known[1]

    def _counted(self, save: str) -> dict[str, int]:
        try:
            return self._parts.counted(save)
        except LorekeeperError:
            return {}

    def _forget(self, save: str) -> None:
        self._counted_at.pop(save, None)
        self._latest.forget(save)
        self._states.forget(save)
        self._actors.forget_known()
        self._parts.exchanged(save)

    def _actor_count(self, folder: Path) -> int:
        return len(folders_of_actors(self._disk, folder))

    def _id_in(self, folder: Path) -> str:
        try:
            stored = read_json(self._disk, folder / SAVE_FILE)
            return str(stored["save_id"]) if stored else ""
        except (LorekeeperError, KeyError):
            return folder.name


def _require_own(timelines: Mapping[str, str], new: str) -> None:
    """Raise InvalidInput where moments of the timeline that a fork is to go on on would be read as those of another."""
    if new and read_as(timelines, new) != new:
        raise InvalidInput(
            "new_timeline_id names a timeline that this save replaced by another one before; choose another id",
            reason=Reason.FIELD_INVALID,
            field="new_timeline_id",
        )
