"""The committer's thread: what fails in it is told, never swallowed."""

from __future__ import annotations

import random
import threading
from functools import partial
from unittest.mock import Mock
from weakref import ref

import pytest

from artemis_py.storage.disk.disk import DiskError
from artemis_py.storage.disk.group_commit import Commit, ThreadCommitter, Write
from tests.kit.disk import Fault, SimDisk


@pytest.mark.parametrize("failure", [DiskError("no space"), ValueError("a mistake")])
def test_a_failure_is_told(failure: Exception) -> None:
    """Also one that nobody expected: the broker stops with a message, and no sender waits for ever."""
    woken = threading.Event()
    committer = ThreadCommitter(woken.set)

    committer.later(Mock(side_effect=failure))
    assert woken.wait(120)
    assert committer.failure is not None
    assert str(failure) in str(committer.failure)
    committer.stop()


class Client:
    """Who waits for what the thread does."""


def test_nothing_is_kept_of_what_is_done() -> None:
    """A part of a large body was kept with its reader, until the next one was read."""
    woken = threading.Event()
    committer = ThreadCommitter(woken.set)
    client = Client()
    left = ref(client)

    def read(reader: Client) -> None:
        return

    committer.later(partial(read, client))
    assert woken.wait(120)
    del client
    assert left() is None
    committer.stop()


def test_a_failure_of_a_batch_that_somebody_waits_for_wakes_a_turn() -> None:
    """The turn that handed it over has looked for failures before; a lone sender waited for the next timer."""
    woken: list[int] = []
    committer = ThreadCommitter(lambda: woken.append(1))
    disk = SimDisk(random.Random(1))
    disk.create("file", 0)
    disk.fault = Fault(0, verbs=("sync",))
    committer.run_now(Commit([Write(disk, "file", 0, b"data", sync=True)], 1))
    assert woken == [1]
    assert committer.finished() is None
    assert "Input/output error" in str(committer.failure)
    committer.stop()
