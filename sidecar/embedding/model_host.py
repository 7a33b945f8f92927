"""Holds the one model that answers: loads it, replaces it, unloads it. Never blocks the event loop.

    none ──load──▶ loading ──▶ ready ──unload──▶ none
                      └──────▶ failed (why stays known; the daemon goes on)

A model that is replaced answers until the new one is ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum

from sidecar.embedding.admission import Admission, AdmissionBounds
from sidecar.embedding.catalogue import Catalogue, ModelEntry
from sidecar.embedding.identity import EmbeddingKind
from sidecar.embedding.loading import Loading, LoadPhase, LoadProgress, Report
from sidecar.embedding.machine import lower_thread_priority, return_free_memory
from sidecar.embedding.manifest import ModelManifest
from sidecar.embedding.metering import Meter
from sidecar.embedding.model_files import ModelFolder
from sidecar.embedding.onnx_provider import OnnxModel, OnnxProvider
from sidecar.embedding.openai_provider import connect
from sidecar.embedding.provider import Provider
from sidecar.embedding.session import cancelled
from sidecar.embedding.stats import Operation
from sidecar.errors import LorekeeperError, NotReady, Reason, TimedOut
from sidecar.settings import EmbeddingSettings


class HostState(Enum):
    NONE = "none"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True)
class LoadedModel:
    """The model that answers; ``manifest`` is None for a server."""

    entry: ModelEntry
    provider: Provider
    doors: Mapping[EmbeddingKind, Admission]
    manifest: ModelManifest | None = None

    @property
    def running(self) -> int:
        """Runs under way, abandoned ones included."""
        return sum(door.running for door in self.doors.values())

    @property
    def queued(self) -> int:
        """Calls that wait for a run now."""
        return sum(door.queued for door in self.doors.values())


class _Load:
    """One load under way, and those who listen to it."""

    task: asyncio.Task[None]

    def __init__(self, entry: ModelEntry) -> None:
        self.entry = entry
        self._listeners: list[asyncio.Queue[LoadProgress | None]] = []

    def tell(self, step: LoadProgress) -> None:
        for listener in self._listeners:
            listener.put_nowait(step)

    def end(self) -> None:
        for listener in self._listeners:
            listener.put_nowait(None)

    async def steps(self) -> AsyncGenerator[LoadProgress]:
        """What happens from now on, READY at the end. Raises what the load raises."""
        listener: asyncio.Queue[LoadProgress | None] = asyncio.Queue()
        self._listeners.append(listener)
        try:
            while (step := await listener.get()) is not None:
                yield step
        finally:
            self._listeners.remove(listener)
        await asyncio.wait([self.task])
        if self.task.cancelled():
            raise cancelled()
        self.task.result()
        yield LoadProgress(LoadPhase.READY, 1, 1, "runs")


StateWatch = Callable[[HostState], None]


class ModelHost:
    """``watch`` is told each change of the state."""

    def __init__(self, settings: EmbeddingSettings, catalogue: Catalogue, meter: Meter, watch: StateWatch) -> None:
        self.loaded: LoadedModel | None = None
        self.loading: str = ""
        self.failures: dict[str, LorekeeperError] = {}
        self.manifests: dict[str, ModelManifest] = {}
        self._settings = settings
        self._catalogue = catalogue
        self._meter = meter
        self._watch = watch
        self._told = HostState.NONE
        self._load: _Load | None = None
        self._last_failed = False
        self._expected = False
        self._closed = False

    @property
    def state(self) -> HostState:
        if self.loaded is not None:
            return HostState.READY
        if self.loading or self._expected:
            return HostState.LOADING
        return HostState.FAILED if self._last_failed else HostState.NONE

    def state_of(self, name: str) -> HostState:
        """What one model is in, by name."""
        if self.loaded is not None and self.loaded.entry.name == name:
            return HostState.READY
        return HostState.LOADING if self.loading == name else HostState.NONE

    def expect(self) -> None:
        """The selected model is about to be loaded: until that begins it counts as loading."""
        self._expected = True

    def ready(self) -> LoadedModel:
        """The model that answers. Raises MODEL_LOADING or NO_MODEL."""
        if self.loaded is not None:
            return self.loaded
        if self.loading or self._expected:
            raise NotReady("the model is being loaded; try again in a moment", reason=Reason.MODEL_LOADING)
        raise no_model()

    async def load(self, name: str = "") -> AsyncGenerator[LoadProgress]:
        """Load a model by name (empty: the selected one) and tell how far it is; the last message is READY.

        A load of the same model that is under way is followed. Whoever began a load and stops listening stops it.
        Raises MODEL_NOT_FOUND, NO_MODEL, MODEL_LOADING (another model is being loaded), MODEL_LOAD_TIMEOUT, and what
        a load raises.
        """
        try:
            entry = await asyncio.to_thread(self._entry, name)
        finally:
            self._expected = False
        follows = self._load
        if self._closed or (follows and follows.entry != entry):
            raise NotReady("another model is being loaded; wait for it", reason=Reason.MODEL_LOADING)
        load = follows or self._begin(entry)
        try:
            async for step in load.steps():
                yield step
        finally:
            if load is not follows:
                load.task.cancel()

    def _begin(self, entry: ModelEntry) -> _Load:
        self._load = load = _Load(entry)
        load.task = asyncio.ensure_future(self._run(load))
        self._changed(loading=entry.name)
        return load

    async def _run(self, load: _Load) -> None:
        try:
            await self._take(await self._loaded(load.entry, load.tell))
        except LorekeeperError as error:
            self.failures[load.entry.name] = error
            self._last_failed = self.loaded is None
            raise
        finally:
            self._load = None
            self._changed(loading="")
            load.end()

    async def unload(self, *, grace: float) -> str:
        """Free the model once its runs have ended (``grace`` seconds, then they are stopped); its name or ''."""
        loaded, self.loaded = self.loaded, None
        self._last_failed = False
        self._changed(loading=self.loading)
        if loaded is None:
            return ""
        await _freed(loaded, grace)
        return loaded.entry.name

    async def close(self) -> None:
        """Stop what runs and free everything; no effect the second time."""
        self._closed = True
        if self._load is not None:
            self._load.task.cancel()
            await asyncio.wait([self._load.task])
        await self.unload(grace=0)

    def _entry(self, name: str) -> ModelEntry:
        if name:
            return self._catalogue.find(name)
        selection = self._catalogue.select()
        if selection.entry is None:
            raise no_model(selection.why)
        return selection.entry

    async def _loaded(self, entry: ModelEntry, tell: Report) -> LoadedModel:
        with self._meter.measured(Operation.MODEL_LOAD):
            try:
                async with asyncio.timeout(self._settings.load_seconds):
                    return await self._opened(entry, tell)
            except TimeoutError:
                raise self._too_slow() from None

    async def _opened(self, entry: ModelEntry, tell: Report) -> LoadedModel:
        if entry.folder is None:
            tell(LoadProgress(LoadPhase.WARMING, 0, 1, "runs"))
            return LoadedModel(entry, await connect(self._settings), self._doors())
        model = await self._read(entry.folder, tell)
        provider = OnnxProvider(model, threads=self._settings.max_concurrent)
        return LoadedModel(entry, provider, self._doors(), model.manifest)

    async def _read(self, folder: ModelFolder, tell: Report) -> OnnxModel:
        """In a thread of its own: one that hangs never blocks the next load."""
        loop = asyncio.get_running_loop()
        loading = Loading(folder, self._settings, lambda step: _from_thread(loop, tell, step))
        thread = ThreadPoolExecutor(1, thread_name_prefix="load", initializer=lower_thread_priority)
        try:
            return await loop.run_in_executor(thread, loading.model)
        finally:
            loading.stop()
            thread.shutdown(wait=False)

    async def _take(self, loaded: LoadedModel) -> None:
        before, self.loaded = self.loaded, loaded
        self._last_failed = False
        self.failures.pop(loaded.entry.name, None)
        if loaded.manifest is not None:
            self.manifests[loaded.entry.name] = loaded.manifest
        self._changed(loading="")
        if before is not None:
            await _freed(before, self._settings.inference_seconds)
        await asyncio.to_thread(return_free_memory)

    def _changed(self, *, loading: str) -> None:
        self.loading = loading
        if self.state is not self._told:
            self._told = self.state
            self._watch(self.state)

    def _doors(self) -> dict[EmbeddingKind, Admission]:
        settings = self._settings
        bounds = AdmissionBounds(
            concurrent=settings.max_concurrent,
            queued=settings.max_queued,
            queue_seconds=settings.queue_seconds,
            run_seconds=settings.inference_seconds,
        )
        return {kind: Admission(bounds) for kind in EmbeddingKind}

    def _too_slow(self) -> TimedOut:
        seconds = self._settings.load_seconds
        return TimedOut(
            f"the model did not load within {seconds:g} s; raise embedding.load_seconds or use a smaller model",
            reason=Reason.MODEL_LOAD_TIMEOUT,
            limit="embedding.load_seconds",
            value=seconds,
        )


def no_model(why: str = "") -> NotReady:
    detail = f" ({why})" if why else ""
    return NotReady(
        f"no embedding model is loaded{detail}; ListModels says which there are, LoadModel loads one by name",
        reason=Reason.NO_MODEL,
    )


async def _freed(loaded: LoadedModel, grace: float) -> None:
    await asyncio.gather(*(door.close(grace) for door in loaded.doors.values()))
    await loaded.provider.close()


def _from_thread(loop: asyncio.AbstractEventLoop, tell: Report, step: LoadProgress) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(tell, step)
