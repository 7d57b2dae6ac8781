"""Who counts as one peer, and that every table of the logins is bounded."""

from __future__ import annotations

import threading
from functools import partial
from weakref import finalize

import pytest

from artemis_py.security.identity import Credentials
from artemis_py.server.logins.login_service import FREE, PEERS_MAX, Digests, LoginCache, LoginThrottle, Workers
from artemis_py.server.logins.networks import ConnectionsBeforeLogin, network_of
from tests.kit.thing import Thing


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb:cccc:dddd:eeee", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("a:name", "a:name"),
    ],
)
def test_an_ipv6_network_is_one_peer(address: str, network: str) -> None:
    assert network_of(address) == network


def test_connections_without_a_login_are_counted_by_peer() -> None:
    limit = ConnectionsBeforeLogin(2)
    assert [limit.add("a"), limit.add("a"), limit.add("a"), limit.add("b")] == [True, True, False, True]
    limit.forget("a")
    assert limit.add("a")
    for network in ("a", "a", "b"):
        limit.forget(network)
    assert limit._counts == {}
    assert all(ConnectionsBeforeLogin(-1).add("a") for _ in range(3))


def test_a_thread_that_waits_for_the_next_login_keeps_nothing_of_the_last() -> None:
    gone = threading.Event()
    client = Thing()
    finalize(client, gone.set)
    workers = Workers(1)
    workers.run(partial(setattr, client, "verified", True))
    del client
    assert gone.wait(20)
    workers.stop()


def test_the_oldest_results_make_room() -> None:
    remembered: LoginCache[int] = LoginCache(3, 100)
    for number in range(10):
        remembered.put(b"%d" % number, number, now_ms=0)
    assert len(remembered) == 3
    assert [remembered.get(b"%d" % number, 99) for number in (6, 7, 9)] == [None, 7, 9]
    assert remembered.get(b"9", 100) is None
    remembered.put(b"7", 70, now_ms=100)
    assert remembered.get(b"7", 150) == 70


def test_the_table_of_those_who_fail_is_bounded() -> None:
    slowing = LoginThrottle()
    for number in range(FREE + 1):
        slowing.failed("first", b"%d" % number, 0)
    assert slowing.pause_ms("first", 0) > 0
    for number in range(PEERS_MAX):
        slowing.failed(str(number), b"x", 0)
    assert len(slowing) == PEERS_MAX
    assert slowing.pause_ms("first", 0) == 0


def test_digests_of_two_processes_have_nothing_in_common() -> None:
    credentials = Credentials("ann", "secret", b"certificate", "domain")
    one = Digests()
    assert one.of(credentials) == one.of(Credentials("ann", "secret", b"certificate", "domain", "192.0.2.1"))
    assert one.of(credentials) != Digests().of(credentials)
    assert len({one.of(each) for each in (Credentials(None), Credentials(""), Credentials("", ""))}) == 3
    assert one.of(Credentials("ann", "\ud800")) != one.of(Credentials("ann", "?"))
