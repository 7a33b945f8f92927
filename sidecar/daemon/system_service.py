"""SystemService: what this daemon is, how it fares, what it has to say, and its end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sidecar.bounds import Bound, require_count, require_not_below_zero
from sidecar.daemon.config import Loaded, settings
from sidecar.daemon.diagnostic_hub import DiagnosticHub, Numbered
from sidecar.daemon.handshake import Handshake
from sidecar.daemon.stats import CallStats
from sidecar.gen.lorekeeper.v1 import system_pb2
from sidecar.storage.format import FORMAT
from sidecar.storage.keys import checked_id
from sidecar.wire import require_known, time_to

CONTRACT_VERSION = "1.0"


@dataclass(frozen=True)
class About:
    """What stays the same while the daemon runs."""

    handshake: Handshake
    instance_id: str
    started: float
    loaded: Loaded
    capabilities: tuple[str, ...]


class SystemService:
    """``counts`` tells how much is open now; ``stop`` begins the end and says whether it had begun before."""

    def __init__(
        self,
        *,
        about: About,
        stats: CallStats,
        hub: DiagnosticHub,
        counts: Callable[[], Mapping[str, int]],
        stop: Callable[[str, str], bool],
    ) -> None:
        self._about = about
        self._stats = stats
        self._hub = hub
        self._counts = counts
        self._stop = stop

    async def GetInfo(self, request: system_pb2.GetInfoRequest, context: Any) -> system_pb2.GetInfoResponse:
        about = self._about
        return system_pb2.GetInfoResponse(
            version=about.handshake.version,
            contract_version=CONTRACT_VERSION,
            capabilities=about.capabilities,
            limits=_limits(about.loaded),
            instance_id=about.instance_id,
            data_dir=about.handshake.told_data_dir,
            pid=about.handshake.pid,
            started=time_to(about.started),
            store_format_version=FORMAT,
            persistent=about.loaded.config.storage.mode == "persistent",
        )

    async def GetStats(self, request: system_pb2.GetStatsRequest, context: Any) -> system_pb2.GetStatsResponse:
        import psutil

        process = psutil.Process()
        times = process.cpu_times()
        return system_pb2.GetStatsResponse(
            uptime_seconds=time.time() - self._about.started,
            resident_bytes=process.memory_info().rss,
            cpu_seconds=times.user + times.system,
            counts=self._counts(),
            running_calls=self._stats.running,
            methods=[
                system_pb2.MethodStats(
                    method=name,
                    count=counted.count,
                    errors=counted.errors,
                    p50_ms=counted.percentile(0.5),
                    p99_ms=counted.percentile(0.99),
                    max_ms=counted.percentile(1.0),
                )
                for name, counted in sorted(self._stats.methods().items())
            ],
        )

    async def WatchDiagnostics(
        self, request: system_pb2.WatchDiagnosticsRequest, context: Any
    ) -> AsyncIterator[system_pb2.WatchDiagnosticsResponse]:
        _check_watch(request, self._about.loaded.config.daemon.max_watched_codes)
        after = request.after_sequence if request.HasField("after_sequence") else None
        codes = set(request.codes)
        missed = 0
        async for numbered, dropped in self._hub.watch(after):
            missed += dropped
            severe = numbered.diagnostic.severity >= request.minimum_severity
            if severe and (not codes or numbered.diagnostic.code in codes):
                yield system_pb2.WatchDiagnosticsResponse(diagnostic=_diagnostic(numbered), dropped=missed)
                missed = 0

    async def Shutdown(self, request: system_pb2.ShutdownRequest, context: Any) -> system_pb2.ShutdownResponse:
        others, reason = self._stats.running - 1, checked_id(request.reason, "reason")
        already = self._stop("shutdown_call", reason)
        return system_pb2.ShutdownResponse(running_calls=others, already_stopping=already)


def _check_watch(request: system_pb2.WatchDiagnosticsRequest, max_codes: int) -> None:
    require_not_below_zero(request.after_sequence, "after_sequence")
    require_known(system_pb2.DiagnosticSeverity, request.minimum_severity, "minimum_severity")
    require_count(len(request.codes), "codes", Bound("daemon.max_watched_codes", max_codes))


def _limits(loaded: Loaded) -> list[system_pb2.Limit]:
    return [
        system_pb2.Limit(
            name=name,
            value=value,
            minimum=field.metadata["low"],
            maximum=field.metadata["high"],
            unit=field.metadata["unit"],
            meaning=field.metadata["meaning"],
            origin=loaded.origins.get(name, "default").partition(" ")[0],
        )
        for name, value, field in settings(loaded.config)
        if "low" in field.metadata
    ]


def _diagnostic(numbered: Numbered) -> system_pb2.Diagnostic:
    return system_pb2.Diagnostic(
        sequence=numbered.sequence,
        code=numbered.diagnostic.code,
        severity=system_pb2.DiagnosticSeverity.ValueType(numbered.diagnostic.severity),
        message=numbered.diagnostic.message,
        time=time_to(numbered.time),
        details=numbered.diagnostic.details,
    )
