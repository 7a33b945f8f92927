"""How a turn that failed is told."""

from __future__ import annotations

import logging

from sidecar.chat.backends.failures import FailureKind
from sidecar.chat.turns.endings import failed_of


def test_a_failure_of_the_daemon_is_told_by_an_id_that_its_own_log_repeats(caplog):
    with caplog.at_level(logging.ERROR, logger="lorekeeper"):
        failed = failed_of(RuntimeError("Ada is a spy"))
    (record,) = (record for record in caplog.records if record.name == "lorekeeper")
    assert (failed.failure.kind, record.code) == (FailureKind.INTERNAL, "internal_failure")
    assert record.incident in failed.failure.message
    assert "Ada" not in failed.failure.message + record.getMessage()
