"""Work that follows behind begins after a wake, goes on while there is more, and ends when it is told to."""

import threading

from sidecar.errors import Reason, Unavailable
from sidecar.storage.background import Background

SECONDS = 10


def test_it_works_until_there_is_no_more():
    done = threading.Event()
    left = [3, 2, 1]

    def work() -> bool:
        left.pop()
        if not left:
            done.set()
        return bool(left)

    background = Background("test", work, delay_seconds=0.0, report=print)
    background.wake()
    assert done.wait(SECONDS)
    background.close()


def test_it_waits_for_quiet_before_each_further_piece_of_work():
    waits: list[int] = []
    left = [3, 2, 1]
    done = threading.Event()

    def work() -> bool:
        if not left:
            return False
        left.pop()
        background.wake()
        if not left:
            done.set()
        return bool(left)

    background = Background("test", work, delay_seconds=0.0, report=print, urgent=lambda: bool(waits.append(1)))
    background.wake()
    assert done.wait(SECONDS)
    background.close()
    assert len(waits) >= 3


def test_what_is_urgent_does_not_wait_for_quiet():
    done = threading.Event()

    def work() -> bool:
        done.set()
        return False

    background = Background("test", work, delay_seconds=3_600.0, report=print, urgent=lambda: True)
    background.wake()
    assert done.wait(SECONDS)
    background.close()


def test_what_fails_is_told_and_tried_again_with_the_next_wake():
    told: list[str] = []
    failed, worked = threading.Event(), threading.Event()

    def work() -> bool:
        if not failed.is_set():
            failed.set()
            raise Unavailable("the disk failed", reason=Reason.STORE_FAILED)
        worked.set()
        return False

    background = Background("test", work, delay_seconds=0.0, report=lambda one: told.append(one.code))
    background.wake()
    assert failed.wait(SECONDS)
    while not worked.wait(0.01):
        background.wake()
    background.close()
    assert told == ["background_failed"]


def test_closing_ends_it_in_the_middle_of_its_work():
    begun = threading.Event()

    def work() -> bool:
        begun.set()
        return True

    background = Background("test", work, delay_seconds=0.0, report=print)
    background.wake()
    assert begun.wait(SECONDS)
    background.close()
    background.wake()


def test_closing_what_never_began_waits_for_nothing():
    Background("test", lambda: False, delay_seconds=60.0, report=print).close()


def test_an_end_that_comes_while_an_older_wake_is_cleared_is_an_end():
    class EndsInBetween(threading.Event):
        """Told to end right before the thread forgets the wake that began its work."""

        def clear(self) -> None:
            background._ending.set()
            self.set()
            super().clear()

    background = Background("test", lambda: False, delay_seconds=SECONDS, report=print)
    background._woken = EndsInBetween()
    background.wake()
    thread = background._thread
    assert thread is not None
    thread.join(SECONDS)
    assert not thread.is_alive()
