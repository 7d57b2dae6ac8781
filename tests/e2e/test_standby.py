"""A pair of brokers on one directory: who waits for what, who takes over when, and what is said meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from artemis_py.storage.disk.lock import WaitingPrimary, owner_of, this_process
from tests.e2e.pair import HANDS_OVER, Pair
from tests.kit.client import connected
from tests.kit.forks import run_text
from tests.kit.http import HttpClient, ask
from tests.kit.process import WAIT_S, eventually, for_each_test, started
from tests.kit.secured import basic, secured_broker

pytestmark = pytest.mark.e2e

READINESS: Final = "/health/ready"


pair = for_each_test(Pair)


def test_a_backup_waits_and_takes_over_from_a_killed_primary(pair: Pair) -> None:
    first = pair.start()
    backup = pair.start("backup")
    with connected(first.port) as client:
        client.publish("/queue/q", ["kept"])
    owner = owner_of(pair.journal)
    assert owner is not None
    assert (owner.process, owner.host, owner.state) == (first.process.pid, socket.gethostname(), "active")
    reply = backup.ask("GET", READINESS)
    assert (reply.status, reply.json["reason"]) == (
        503,
        f"stand-by: waits for the lock of {owner.shown} in {pair.journal}",
    )
    assert backup.metrics("artemis_active", broker="e2e") == [0]
    assert "stomp" not in backup.ports
    http = backup.ports["http"]
    page = ask(http, "GET", "/ui/")
    assert (page.status, b'data-broker="e2e"' in page.body) == (200, True)
    first.kill()
    backup.await_state("ready")
    assert backup.ports["http"] == http, "the port was closed in between"
    assert "reason" not in backup.api(READINESS)
    assert backup.metrics("artemis_active", broker="e2e") == [1]
    with connected(backup.port) as client:
        client.finds("/queue/q", b"kept")
    assert backup.stop() == 0


def test_the_life_of_a_pair(pair: Pair) -> None:
    """Failover, failback, an orderly stop after which the backup waits, and one after which it takes over."""
    first = pair.start()
    backup = pair.start("backup")
    first.kill()
    backup.await_state("ready")
    with connected(backup.port) as client:
        client.publish("/queue/q", ["in between"])
    second = pair.start()
    backup.await_state(f"the lock of process {second.process.pid} ")
    with connected(second.port) as client:
        client.finds("/queue/q", b"in between")
    assert second.stop() == 0
    backup.await_state("was stopped, and is to be started again")
    third = pair.start(settings=HANDS_OVER)
    backup.await_state(f"the lock of process {third.process.pid} ")
    assert third.stop() == 0
    backup.await_state("ready")
    assert backup.said.count("is ready") == 2
    with connected(backup.port) as client:
        client.finds("/queue/q", b"in between")
    assert backup.stop() == 0
    owner = owner_of(pair.journal)
    assert owner is not None
    assert owner.state == "stopped"


def test_a_backup_that_is_not_restarted_ends_after_the_failback(pair: Pair) -> None:
    first = pair.start()
    backup = pair.start("backup", "<restart-backup>false</restart-backup>")
    first.kill()
    backup.await_state("ready")
    waiting = WaitingPrimary(pair.journal)
    waiting.show()
    assert backup.process.wait(WAIT_S) == 0
    assert "stopping: a primary waits for the lock" in backup.said


def test_who_waits_says_on_every_path_who_works(pair: Pair) -> None:
    first, backup = pair.start(), pair.start("backup")
    owner = owner_of(pair.journal)
    assert owner is not None
    told = {"error": backup.ask("GET", READINESS).json["reason"], "active": owner.shown}
    large = bytes(1 << 20)
    asked: list[tuple[str, str, bytes | None]]
    asked = [("GET", "/log?after_lsn=7", None), ("PUT", "/log/cursors/c", b"{}"), ("POST", "/messages/q", large)]
    with HttpClient(backup.ports["http"]) as client:
        for method, path, body in asked:
            reply = client.ask(method, path, body)
            assert (reply.status, reply.json, reply.headers["Retry-After"]) == (503, told, "5"), path
    assert first.stop() == 0
    backup.await_state("was stopped, and is to be started again")
    reply = backup.ask("GET", "/log")
    assert (reply.status, reply.json["active"]) == (503, None)
    assert "was stopped, and is to be started again" in reply.error


def test_who_waits_tells_those_who_may_log_in(tmp_path: Path) -> None:
    policy = "<ha-policy><shared-store><{}/></shared-store></ha-policy>"
    with secured_broker(tmp_path, policy.format("primary")):
        text = (tmp_path / "broker.xml").read_text("utf-8")
        file = tmp_path / "backup.xml"
        file.write_text(text.replace(policy.format("primary"), policy.format("backup")), "utf-8")
        with started(file, ready=False) as backup:
            backup.await_state("the lock of process")
            logins = [{}, {"Authorization": basic("ann", "wrong")}, {"Authorization": basic("ann")}]
            replies = [backup.ask("GET", "/log", **login) for login in logins]
            assert [reply.status for reply in replies] == [401, 401, 503]
            assert "process" in replies[2].json["active"]
            assert not any(b"process" in reply.body for reply in replies[:2])


def test_those_who_do_not_wait(pair: Pair) -> None:
    """One without a policy, and one whose patience has an end."""
    first = pair.start()
    owner = f"process {first.process.pid} on host {socket.gethostname()} since "
    patience = "<journal-lock-acquisition-timeout>1</journal-lock-acquisition-timeout>"
    impatient = pair.start("backup", core=patience, state="")
    alone = pair.folder / "alone.xml"
    before, _, after = (pair.folder / "0.xml").read_text("utf-8").partition("<ha-policy>")
    alone.write_text(before + after.partition("</ha-policy>")[2], "utf-8")
    done = run_text(["run", str(alone)], timeout=WAIT_S)
    assert done.returncode == 1
    assert f"is in use by another broker ({owner}" in done.stderr
    assert impatient.process.wait(WAIT_S) == 1
    assert f"after 1 ms it still waits for the lock of {owner}" in impatient.said


def test_a_lock_that_another_broker_has_taken_is_the_end(pair: Pair) -> None:
    """As a network file system may let it happen: what says who has the lock is not ours any more."""
    first = pair.start()
    with (pair.journal / "server.lock").open("r+b") as lock:  # never empty in between: the first would write it again
        lock.write(this_process("active").text)
        lock.truncate()
    assert first.process.wait(WAIT_S) == 3
    assert f"the lock was lost to process {os.getpid()} on host " in first.said


WORDLESS: Final[Mapping[str, Callable[[Path], object]]] = {
    "emptied": lambda lock: lock.write_bytes(b""),
    "overwritten": lambda lock: lock.write_bytes(b"\xff nothing that anybody wrote\n"),
    "removed": Path.unlink,
    "replaced": lambda lock: (lock.with_name("new").touch(), lock.with_name("new").replace(lock)),
}


@pytest.mark.parametrize("how", ["emptied", "overwritten"])
def test_a_lock_file_that_names_nobody_is_written_again(pair: Pair, how: str) -> None:
    first, backup = pair.start(), pair.start("backup")
    with connected(first.port) as client:
        client.publish("/queue/q", ["kept"])
    before = owner_of(pair.journal)
    WORDLESS[how](pair.journal / "server.lock")
    first.eventually("the owner", lambda: owner_of(pair.journal), lambda owner: owner == before)
    first.eventually("a word", lambda: first.said, lambda said: said.count("named no broker any more") == 1)
    assert "reason" not in first.api(READINESS)
    assert backup.ask("GET", READINESS).status == 503
    first.kill()
    backup.await_state("ready")
    with connected(backup.port) as client:
        client.finds("/queue/q", b"kept")


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_lock_file_that_is_gone_ends_its_broker_and_the_backups_take_over(pair: Pair, how: str) -> None:
    first = pair.start()
    with connected(first.port) as client:
        client.publish("/queue/q", ["kept"])
    backups = [pair.start("backup"), pair.start("backup")]
    WORDLESS[how](pair.journal / "server.lock")
    assert first.process.wait(WAIT_S) == 3
    eventually("one takes over", lambda: sorted(one.state == "ready" for one in backups), lambda all: all[-1])
    third, second = sorted(backups, key=lambda one: one.state == "ready")
    second.await_state("ready")
    third.await_state(f"the lock of process {second.process.pid}")
    assert "this backup takes over" in second.said
    with connected(second.port) as client:
        client.finds("/queue/q", b"kept")
    second.kill()
    third.await_state("ready")
    with connected(third.port) as client:
        client.finds("/queue/q", b"kept")


@pytest.mark.parametrize("how", WORDLESS)
def test_no_word_is_not_never_used(pair: Pair, how: str) -> None:
    first = pair.start()
    with connected(first.port) as client:
        client.publish("/queue/q", ["kept"])
    first.kill()
    WORDLESS[how](pair.journal / "server.lock")
    backup = pair.start("backup", state="ready")
    assert "this backup takes over" in backup.said
    with connected(backup.port) as client:
        client.finds("/queue/q", b"kept")


def test_a_directory_that_is_moved_and_put_back(pair: Pair) -> None:
    first, backup = pair.start(), pair.start("backup")
    with connected(first.port) as client:
        client.publish("/queue/q", ["kept"])
    away = pair.journal.with_name("away")
    pair.journal.rename(away)
    assert first.process.wait(WAIT_S) == 3
    backup.await_state(f"the directory {pair.journal}: mount it, or put it back")
    away.rename(pair.journal)
    backup.await_state("ready")
    with connected(backup.port) as client:
        client.finds("/queue/q", b"kept")


def test_a_backup_waits_for_a_primary_where_no_journal_is(pair: Pair) -> None:
    pair.journal.mkdir(parents=True)
    (pair.journal / "server.lock").write_bytes(b"")
    backup = pair.start("backup", state="the first start of a primary in ")
    first = pair.start()
    first.kill()
    backup.await_state("ready")
