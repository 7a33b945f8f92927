"""The room of saves, built when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.daemon.ground import Ground
    from sidecar.memory.actor_files import ActorFiles, Vectors
    from sidecar.saves.access import SaveAccess
    from sidecar.saves.answers import Answers
    from sidecar.saves.automatic import AutomaticCheckpoints
    from sidecar.saves.erasing import Erasures
    from sidecar.saves.erasing_service import ErasingService
    from sidecar.saves.erasure import ActorCopies, Erasure
    from sidecar.saves.parts import SavePart, SaveParts
    from sidecar.saves.save_files import SaveFiles
    from sidecar.saves.save_settings import SaveSettingsStore
    from sidecar.saves.service import SaveService
    from sidecar.saves.transfer_service import TransferService
    from sidecar.storage.keys import ActorId
    from sidecar.storage.save_gate import SaveGate


class SaveRooms:
    """What handles saves as a whole. ``parts`` are the rooms that keep something of a save."""

    def __init__(
        self,
        ground: Ground,
        *,
        gate: SaveGate,
        parts: Callable[[], Sequence[SavePart]],
        actor_files: Callable[[], ActorFiles],
        vectors: Callable[[], Vectors],
        unstored: Callable[[], Iterable[ActorId]],
        staying: Callable[[str], AbstractContextManager[None]],
        settings_changed: Callable[[str], None],
    ) -> None:
        """``settings_changed`` is told of each save whose settings were replaced; ``unstored`` tells the actors of whom
        something lives in this process only, and ``staying`` keeps that of a save while its files are exchanged."""
        self._ground = ground
        self._unstored = unstored
        self._staying = staying
        self._settings_changed = settings_changed
        self._gate = gate
        self._open_parts = parts
        self._actor_files = actor_files
        self._vectors = vectors

    @cached_property
    def parts(self) -> SaveParts:
        from sidecar.saves.parts import SaveParts

        return SaveParts(self._open_parts())

    @cached_property
    def settings(self) -> SaveSettingsStore:
        from sidecar.saves.save_settings import SaveSettingsStore

        return SaveSettingsStore(self._ground.disk, self._ground.saves, self._settings_changed)

    @cached_property
    def files(self) -> SaveFiles:
        from sidecar.saves.save_files import SaveFiles

        return SaveFiles(
            self._ground.disk,
            self._ground.actors,
            self._ground.saves,
            self.settings,
            self.parts,
            self._ground.config.saves,
            hold=self._gate.hold,
        )

    @cached_property
    def actor_copies(self) -> ActorCopies:
        from sidecar.saves.erasure import ActorCopies

        return ActorCopies(self._ground.disk, self._ground.actors, self.files, self.parts)

    @cached_property
    def access(self) -> SaveAccess:
        from sidecar.saves.access import SaveAccess

        return SaveAccess(self._gate, self._ground.workers, self._ground.config.saves)

    @cached_property
    def answers(self) -> Answers:
        from sidecar.saves.answers import Answers

        return Answers(self._ground.disk, most=self._ground.config.saves.kept_answers)

    @cached_property
    def erasure(self) -> Erasure:
        from sidecar.saves.erasure import Erasure

        rooms = (self._ground.actors, self._actor_files(), self.actor_copies, self.files, self._vectors())
        return Erasure(*rooms, unstored=self._unstored)

    @cached_property
    def erasures(self) -> Erasures:
        from sidecar.saves.erasing import Erasures

        return Erasures(self._ground.disk, self.files.layout, self.erasure, self.answers, self._ground.report)

    def recover(self) -> None:
        """End the exchanges and the erasures that a kill left half done."""
        self.files.exchanges.recover()
        if self._ground.disk.names(self.files.layout.exchanges):
            self.erasures.recover()

    def close(self) -> None:
        """Make no more checkpoints by itself."""
        if "automatic" in self.__dict__:
            self.automatic.close()

    @cached_property
    def automatic(self) -> AutomaticCheckpoints:
        from sidecar.saves.automatic import AutomaticCheckpoints

        poll_seconds = self._ground.config.saves.automatic_poll_seconds
        return AutomaticCheckpoints(
            self.files, self.settings, self.access, self._ground.report, poll_seconds=poll_seconds
        )

    @cached_property
    def service(self) -> SaveService:
        from sidecar.saves.service import SaveService

        self.automatic.start()
        return SaveService(
            files=self.files,
            settings=self.settings,
            states=self._ground.saves,
            access=self.access,
            answers=self.answers,
            limits=self._ground.config.saves,
            language=self._ground.config.search.language,
            paging=self._ground.paging,
        )

    @cached_property
    def erasing_service(self) -> ErasingService:
        from sidecar.saves.erasing_service import ErasingService

        return ErasingService(
            erasures=self.erasures,
            erasure=self.erasure,
            answers=self.answers,
            files=self.files,
            states=self._ground.saves,
            access=self.access,
        )

    @cached_property
    def transfer_service(self) -> TransferService:
        from sidecar.gen.lorekeeper.v1 import save_pb2
        from sidecar.saves.foreign_saves import ForeignSaves
        from sidecar.saves.importer import Importer
        from sidecar.saves.transfer_service import TransferService

        foreign = ForeignSaves(
            self._ground.disk,
            self._ground.config.saves,
            self._ground.config.memory,
            self._ground.config.records,
            known=lambda save: list(self._ground.actors.of_save(save)),
            report=self._ground.report,
        )
        return TransferService(
            disk=self._ground.disk,
            files=self.files,
            importer=Importer(
                self._ground.disk,
                self.files,
                self._ground.saves,
                self._ground.config.saves,
                unstored=self._unstored,
                staying=self._staying,
            ),
            foreign={
                save_pb2.IMPORT_FORMAT_COREAI: foreign.coreai,
                save_pb2.IMPORT_FORMAT_OPENGAMEAGENT: foreign.opengameagent,
            },
            states=self._ground.saves,
            access=self.access,
            limits=self._ground.config.saves,
        )
