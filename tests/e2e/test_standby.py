"""A pair of brokers on one directory: who waits for what, who takes over when, and what is said meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from artemis_py.storage.disk.lock import WaitingPrimary
from artemis_py.storage.disk.owner import owner_of, this_process
from tests.e2e.broker_process import WAIT_S
from tests.e2e.forks import run_text
from tests.e2e.pair import HANDS_OVER, Pair, gone, pair_in
from tests.e2e.stomp_socket import connected
from tests.e2e.test_journal_files import PERSISTENT

pytestmark = pytest.mark.e2e


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with pair_in(tmp_path) as pair:
        yield pair


def test_a_backup_waits_and_takes_over_from_a_killed_primary(pair: Pair) -> None:
    first = pair.ready()
    backup = pair.waiting()
    with connected(first.port) as client:
        client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"kept")
    owner = owner_of(pair.journal)
    assert owner is not None
    assert (owner.process, owner.host, owner.state) == (first.process.pid, socket.gethostname(), "active")
    assert backup.readiness() == (503, f"stand-by: waits for the lock of {owner.shown} in {pair.journal}")
    assert backup.metrics("artemis_active", broker="pair") == [0]
    assert "stomp" not in backup.ports
    http = backup.ports["http"]
    first.kill()
    backup.await_state("ready")
    assert backup.ports["http"] == http, "the port was closed in between"
    assert backup.readiness() == (200, "")
    assert backup.metrics("artemis_active", broker="pair") == [1]
    with connected(backup.port) as client:
        client.subscribe("/queue/q")
        assert client.message().body == b"kept"
    assert backup.stop() == 0


def test_the_life_of_a_pair(pair: Pair) -> None:
    """Failover, failback, an orderly stop after which the backup waits, and one after which it takes over."""
    first = pair.ready()
    backup = pair.waiting()
    first.kill()
    backup.await_state("ready")
    with connected(backup.port) as client:
        client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"in between")
    second = pair.ready()
    backup.await_state(f"the lock of process {second.process.pid} ")
    with connected(second.port) as client:
        client.subscribe("/queue/q")
        assert client.message().body == b"in between"
    assert second.stop() == 0
    backup.await_state("was stopped, and is to be started again")
    third = pair.ready(settings=HANDS_OVER)
    backup.await_state(f"the lock of process {third.process.pid} ")
    assert third.stop() == 0
    backup.await_state("ready")
    assert backup.said.count("is ready") == 2
    with connected(backup.port) as client:
        client.subscribe("/queue/q")
        assert client.message().body == b"in between"
    assert backup.stop() == 0
    owner = owner_of(pair.journal)
    assert owner is not None
    assert owner.state == "stopped"


def test_a_backup_that_is_not_restarted_ends_after_the_failback(pair: Pair) -> None:
    first = pair.ready()
    backup = pair.waiting(settings="<restart-backup>false</restart-backup>")
    first.kill()
    backup.await_state("ready")
    waiting = WaitingPrimary(pair.journal)
    waiting.show()
    assert gone(backup) == 0
    assert "stopping: a primary waits for the lock" in backup.said


def test_those_who_do_not_wait(pair: Pair) -> None:
    """One without a policy, and one whose patience has an end."""
    first = pair.ready()
    owner = f"process {first.process.pid} on host {socket.gethostname()} since "
    impatient = pair.start("backup", core="<journal-lock-acquisition-timeout>1</journal-lock-acquisition-timeout>")
    alone = pair.folder / "alone.xml"
    before, _, after = (pair.folder / "0.xml").read_text("utf-8").partition("<ha-policy>")
    alone.write_text(before + after.partition("</ha-policy>")[2], "utf-8")
    done = run_text(["run", str(alone)], timeout=WAIT_S)
    assert done.returncode == 1
    assert f"is in use by another broker ({owner}" in done.stderr
    assert gone(impatient) == 1
    assert f"after 1 ms it still waits for the lock of {owner}" in impatient.said


def test_a_lock_that_another_broker_has_taken_is_the_end(pair: Pair) -> None:
    """As a network file system may let it happen: what says who has the lock is not ours any more."""
    first = pair.ready()
    (pair.journal / "server.lock").write_bytes(this_process("active").text)
    assert gone(first) == 3
    assert f"the lock was lost to process {os.getpid()} on host " in first.said
