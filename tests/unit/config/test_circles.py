"""Loops of diverts, bridges, expiry and dead-letter addresses: told with the whole way, and only where there is one."""

from __future__ import annotations

import sys

import pytest

from artemis_py.errors import Problem
from tests.kit.documents import acceptor, problems_of, settings


def circles(core: str) -> list[Problem]:
    return [problem for problem in problems_of(core) if problem.code == "circle"]


def diverts(*pairs: tuple[str, str]) -> str:
    inside = "".join(
        f'\n<divert name="d{number}"><address>{address}</address>'
        f"<forwarding-address>{target}</forwarding-address></divert>"
        for number, (address, target) in enumerate(pairs)
    )
    return f"<diverts>{inside}\n</diverts>"


def queues(*queues: tuple[str, str]) -> str:
    inside = "".join(
        f'\n<address name="{name}"><anycast><queue name="{name}" {attributes}/></anycast></address>'
        for name, attributes in queues
    )
    return f"<addresses>{inside}</addresses>"


EXPIRES = "<expiry-delay>50</expiry-delay><expiry-address>{}</expiry-address>"
DIES = "<dead-letter-address>{}</dead-letter-address>"


def test_two_expiry_addresses() -> None:
    (problem,) = circles(settings(("a", EXPIRES.format("b")), ("b", EXPIRES.format("a"))))
    assert (problem.severity, problem.line) == ("warning", 4)
    assert problem.message == (
        "messages go in a loop until the broker drops them after 16 hops at most: "
        "from 'a' to 'b' by expiry-address (broker.xml:4), "
        "from 'b' to 'a' by expiry-address (broker.xml:5)"
    )


def test_queues_that_limit_the_time() -> None:
    """Expiry by ``max-message-ttl``; the expiry addresses may be those of all."""
    ways = settings(("a", "<expiry-address>b</expiry-address>"), ("b", "<expiry-address>a</expiry-address>"))
    both = queues(("a", "max-message-ttl='5'"), ("b", "max-message-ttl='5'"))
    assert len(circles(both + ways)) == 1
    assert not circles(queues(("a", "max-message-ttl='5'"), ("b", "")) + ways), "what comes to b stays"
    given = queues(("a", "max-message-ttl='5'"), ("b", "expiration='5ms'"))
    assert len(circles(given + ways)) == 1, "what comes to b has no expiry of its own"
    deleting = queues(("a", "max-message-ttl='5'"), ("b", "max-message-ttl='5' expiry-policy='DELETE'"))
    assert not circles(deleting + ways)


@pytest.mark.parametrize("pairs", [[("a", "a")], [("a", "b"), ("b", "c"), ("c", "a")], [("a", "x, b"), ("b", "y, a")]])
def test_diverts(pairs: list[tuple[str, str]]) -> None:
    (problem,) = circles(diverts(*pairs))
    assert problem.severity == "warning"
    assert problem.message.count("divert 'd") == len(pairs)
    assert "(broker.xml:4)" in problem.message


def test_a_divert_and_an_expiry_address() -> None:
    (problem,) = circles(diverts(("a", "b")) + settings(("b", EXPIRES.format("a"))))
    assert "by divert 'd0'" in problem.message
    assert "by expiry-address" in problem.message
    assert not circles(diverts(("a", "b")) + settings(("b", "<expiry-address>a</expiry-address>")))


def test_messages_without_a_route() -> None:
    no_route = "<send-to-dla-on-no-route>true</send-to-dla-on-no-route>"
    (problem,) = circles(settings(("a", DIES.format("b") + no_route), ("b", DIES.format("a") + no_route)))
    assert "after 16 hops" in problem.message


def test_circles_with_consumers_that_fail() -> None:
    """A warning where it is written for these addresses, a note where it follows from what is meant for many."""
    (problem,) = circles(settings(("a", DIES.format("b")), ("b", DIES.format("a"))))
    assert (problem.severity, problem.line) == ("warning", 4)
    assert "for as long as consumers fail" in problem.message
    (retry,) = circles(settings(("work", DIES.format("retry")), ("retry", EXPIRES.format("work"))))
    assert "for as long as consumers fail" in retry.message
    (own,) = circles(queues(("a", "dead-letter-address='b'"), ("b", "dead-letter-address='a'")))
    assert own.message.count("by dead-letter-address (broker.xml:") == 2
    (note,) = circles(settings(("#", DIES.format("DLQ") + EXPIRES.format("ExpiryQueue"))))
    assert note.severity == "note"


def bridge(queue: str, target: str = "", at: str = "localhost:7001") -> str:
    forwarding = f"<forwarding-address>{target}</forwarding-address>" if target else ""
    return (
        f'\n<connectors><connector name="{queue}">tcp://{at}</connector></connectors>'
        f'\n<bridges><bridge name="{queue}-on"><queue-name>{queue}</queue-name>{forwarding}'
        f"<static-connectors><connector-ref>{queue}</connector-ref></static-connectors></bridge></bridges>"
    )


OWN = acceptor("tcp://0.0.0.0:7001?protocols=STOMP;anycastPrefix=/queue/") + queues(("a", ""), ("b", ""))


@pytest.mark.parametrize("target", ["", "a", "/queue/a", "a::a"])
def test_a_bridge_to_its_own_queue(target: str) -> None:
    (problem,) = circles(OWN + bridge("a", target))
    assert (problem.severity, problem.line) == ("warning", 7)
    assert problem.message == (
        "messages go in a loop until they come back to the bridge: from 'a' to 'a' by bridge 'a-on' (broker.xml:7)"
    )


def test_several_bridges_and_a_divert() -> None:
    (problem,) = circles(OWN + bridge("a", "b") + bridge("b", "a"))
    assert problem.message.count(" by bridge ") == 2
    (problem,) = circles(OWN + bridge("a", "x") + diverts(("x", "a")))
    assert (problem.message.count(" by bridge "), problem.message.count(" by divert ")) == (1, 1)


@pytest.mark.parametrize(
    "core",
    [
        bridge("a", "b"),
        bridge("a", "b::b"),
        bridge("a", "/topic/a"),
        bridge("a", "a", at="localhost:7002"),
        bridge("a", "a", at="far.example:7001"),
    ],
)
def test_bridges_that_lead_elsewhere(core: str) -> None:
    assert not circles(OWN + core)


def test_no_circle() -> None:
    """What stock files have; no attempts, no circle; and an address that is its own dead-letter or expiry address."""
    stock = DIES.format("DLQ") + "<expiry-address>ExpiryQueue</expiry-address>"
    assert not circles(settings(("#", stock)) + queues(("DLQ", ""), ("ExpiryQueue", "")))
    never = "<max-delivery-attempts>0</max-delivery-attempts>"
    assert not circles(settings(("a", DIES.format("b") + never), ("b", DIES.format("a") + never)))
    assert not circles(settings(("a", DIES.format("a") + EXPIRES.format("a"))))
    assert not circles(diverts(("a", "b"), ("b", "c"), ("a", "c")))


def test_each_group_is_told_once() -> None:
    pairs = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("x", "y"), ("y", "x"), ("c", "x")]
    found = circles(diverts(*pairs))
    assert len(found) == 2
    assert {problem.message.partition("'")[2][0] for problem in found} == {"a", "x"}


def test_long_ways_are_followed() -> None:
    """Three times as many addresses in a circle as a recursion could follow."""
    count = 3 * sys.getrecursionlimit()
    (problem,) = circles(diverts(*((f"a{number}", f"a{(number + 1) % count}") for number in range(count))))
    assert problem.severity == "warning"
