"""The committer's thread: what fails in it is told, never swallowed."""

from __future__ import annotations

import threading

import pytest

from artemis_py.storage.committer import ThreadCommitter
from artemis_py.storage.disk import DiskError


@pytest.mark.parametrize("failure", [DiskError("no space"), ValueError("a mistake")])
def test_a_failure_is_told(failure: Exception) -> None:
    """Also one that nobody expected: the broker stops with a message, and no sender waits for ever."""
    woken = threading.Event()
    committer = ThreadCommitter(woken.set)

    def fail() -> None:
        raise failure

    committer.later(fail)
    assert woken.wait(10)
    assert committer.failure is not None
    assert str(failure) in str(committer.failure)
    committer.stop()
