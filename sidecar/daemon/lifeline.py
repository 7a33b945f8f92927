"""How the daemon learns that nobody needs it any more: standard input closes, or its parent process ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass


def watch_standard_input(closed: Callable[[], object]) -> None:
    """Call ``closed`` from a thread of its own once standard input is at its end. What comes in is thrown away."""

    def read_to_the_end() -> None:
        # Plain reads of the descriptor: a buffered reader would hold a lock that ending the interpreter waits for.
        with contextlib.suppress(OSError):
            while os.read(0, 4_096):
                pass
        closed()

    threading.Thread(target=read_to_the_end, name="lifeline", daemon=True).start()


@dataclass(frozen=True)
class OtherProcess:
    """A process, told from a later one with the same id by its start time."""

    pid: int
    started: float

    @classmethod
    def find(cls, pid: int) -> OtherProcess | None:
        """The process that has this id now; None where there is none."""
        import psutil

        try:
            return cls(pid, psutil.Process(pid).create_time())
        except psutil.Error:
            return None

    def lives(self) -> bool:
        """False once it has ended, also while nobody has collected it yet."""
        import psutil

        try:
            process = psutil.Process(self.pid)
            return bool(process.create_time() == self.started and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False
        except psutil.Error:
            return True  # not allowed to look: it is there


async def parent_ended(pid: int, *, poll_seconds: float) -> None:
    """Return once the process ``pid``, as it is now, has ended."""
    parent = await asyncio.to_thread(OtherProcess.find, pid)
    # No system tells of the end of a process that is not a child, so it is looked at.
    while parent is not None and parent.lives():  # noqa: ASYNC110
        await asyncio.sleep(poll_seconds)
