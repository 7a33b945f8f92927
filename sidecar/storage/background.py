"""Work that follows behind: a thread that is woken, waits for a quiet moment, and works until there is no more."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import LorekeeperError

_MOST_DELAYS = 10


class Background:
    """Calls ``work`` in a thread of its own after :meth:`wake`; True means that more is to be done.

    It begins once nothing has woken it for ``delay_seconds``, or after ten times as long at the latest, and so does
    each further piece of work: while calls change things they have the machine. Where ``urgent`` it does not wait. What
    ``work`` raises is told and tried again at the next wake. The thread begins with the first wake.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], bool],
        *,
        delay_seconds: float,
        report: Report,
        urgent: Callable[[], bool] = lambda: False,
    ) -> None:
        self._name = name
        self._work = work
        self._urgent = urgent
        self._delay = delay_seconds
        self._report = report
        self._woken = threading.Event()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def wake(self) -> None:
        """There is something to do."""
        if self._woken.is_set():
            return
        self._woken.set()
        with self._lock:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Finish the piece of work that has begun, and end."""
        self._ending.set()
        self._woken.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        # The end is asked for before each wait: what woke the thread to end may have been cleared as an older wake.
        while not self._ending.is_set():
            self._woken.wait()
            self._wait_for_quiet()
            self._work_through()

    def _wait_for_quiet(self) -> None:
        for _ in range(_MOST_DELAYS):
            self._woken.clear()
            if self._urgent() or self._ending.wait(self._delay) or not self._woken.is_set():
                return
        self._woken.clear()

    def _work_through(self) -> None:
        try:
            while not self._ending.is_set() and self._work():
                if self._woken.is_set():
                    self._wait_for_quiet()
        except (LorekeeperError, OSError) as error:
            details = {"work": self._name, "error": type(error).__name__}
            self._report(Diagnostic("background_failed", "work that follows behind failed", Severity.ERROR, details))
