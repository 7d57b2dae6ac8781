"""Diverts that operators make: at once, after a restart, and beside those that broker.xml declares."""

from __future__ import annotations

import pytest

from artemis_py.errors import BadRequestError, BrokerError, NotFoundError
from tests.kit.core import redeploy
from tests.kit.in_process import configuration
from tests.kit.life import Life
from tests.unit.management.operated import Operated, operated_bench

QUEUES = """<addresses><address name='q'><anycast><queue name='q'/></anycast></address>
<address name='r'><anycast><queue name='r'/></anycast></address>
<address name='s'><anycast><queue name='s'/></anycast></address></addresses>"""
DECLARED = """<diverts><divert name='d'><address>q</address><forwarding-address>r</forwarding-address></divert>
</diverts>"""


def counts(operated: Operated) -> tuple[int, ...]:
    """How many messages are on q, r and s."""
    queues = operated.managed.broker.queues
    return tuple(queues[name].message_count if name in queues else 0 for name in "qrs")


def names(operated: Operated) -> list[str]:
    return [row["name"] for row in operated.do("listDiverts")]


# ---- create, update, destroy -------------------------------------------------------------------------


def test_it_works_from_then_on() -> None:
    one, operated = operated_bench(core=QUEUES)
    one.send("before")
    row = operated.do("createDivert", name="d", address="q", forwarding_address="r, s", filter_string="kind = 'a'")
    assert {name: row[name] for name in ("name", "address", "forwardingAddress", "exclusive", "filter")} == {
        "name": "d", "address": "q", "forwardingAddress": "r,s", "exclusive": False, "filter": "kind = 'a'",
    }  # fmt: skip
    assert (row["routingType"], row["declaredAt"]) == ("STRIP", None)
    one.send("not this")
    one.send("this", "kind:a")
    assert counts(operated) == (3, 1, 1)
    operated.do("updateDivert", name="d", exclusive=True, forwarding_address="s", filter_string="")
    one.send("all")
    assert counts(operated) == (3, 1, 2)
    assert operated.do("destroyDivert", name="d") == {"destroyed": 1}
    one.send("after")
    assert (counts(operated), names(operated)) == ((4, 1, 2), [])


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"name": ""}, BadRequestError, "needs a name"),
        ({"forwarding_address": "r,,s"}, BadRequestError, "an address to forward to"),
        ({"address": "q::q"}, BadRequestError, "'q::q' is not an address that a divert can have: it names a queue"),
        ({"forwarding_address": "activemq.management"}, BadRequestError, "is carried out, and not routed"),
        ({"filter_string": "a = "}, BadRequestError, "the filter is not a valid selector"),
        ({"routing_type": "ANY"}, BadRequestError, "routing-type is one of STRIP, PASS, ANYCAST, MULTICAST"),
        ({"transformer_configuration": "org.example.T"}, BadRequestError, "a transformer is a Java class"),
        ({"name": "d"}, BrokerError, "Divert d already exists on address q"),
    ],
)
def test_what_is_refused_changes_nothing(arguments: dict[str, object], error: type[Exception], said: str) -> None:
    one, operated = operated_bench(core=QUEUES + DECLARED)
    with pytest.raises(error, match=said):
        operated.do("createDivert", **{"name": "e", "address": "new", "forwarding_address": "r", **arguments})
    assert names(operated) == ["d"]
    assert "new" not in one.world.broker.addresses
    refused = {name: value for name, value in arguments.items() if name not in ("name", "address")}
    if refused:
        with pytest.raises(error, match=said):
            operated.do("updateDivert", name="d", **refused)
        assert operated.do("listDiverts")[0]["forwardingAddress"] == "r"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, []),
        ({"address": "q.#"}, ["begins at the pattern 'q.#'"]),
        ({"forwarding_address": "r.#"}, ["forwards to the pattern 'r.#'"]),
        ({"forwarding_address": "/queue/r"}, ["forwards to the address '/queue/r', and not to 'r'"]),
        ({"forwarding_address": "new"}, ["forwards to 'new', which has no queue"]),
        ({"forwarding_address": "new", "routing_type": "ANYCAST"}, []),
        ({"forwarding_address": "wide.new"}, []),
        ({"forwarding_address": "q"}, ["forwards to its own address: what is sent there comes twice"]),
    ],
)
def test_what_may_not_be_meant_is_told(arguments: dict[str, object], said: list[str]) -> None:
    """In the same words as by ``check``."""
    _, operated = operated_bench(core=QUEUES)
    operated.do("createQueue", name="wide", address="wide.#", routing_type="MULTICAST")
    row = operated.do("createDivert", **{"name": "d", "address": "q", "forwarding_address": "r", **arguments})
    assert bool(row["warning"]) == bool(said)
    assert all(text in row["warning"] for text in said)


def test_one_that_is_not_there() -> None:
    _, operated = operated_bench(core=QUEUES)
    for id in ("updateDivert", "destroyDivert"):
        with pytest.raises(NotFoundError, match="there is no divert d"):
            operated.do(id, name="d")


def test_it_makes_its_address_and_keeps_it() -> None:
    one, operated = operated_bench(core=QUEUES)
    operated.do("createDivert", name="d", address="new", forwarding_address="r")
    one.send("x", to="/queue/new")
    assert counts(operated) == (0, 1, 0)
    with pytest.raises(BrokerError, match="Address new has the divert d; destroy that first"):
        operated.do("deleteAddress", address="new", force=True)
    operated.do("destroyDivert", name="d")
    operated.do("deleteAddress", address="new", force=True)
    assert "new" not in one.world.broker.addresses


# ---- after a restart ---------------------------------------------------------------------------------


def after(old: Life, core: str = "") -> tuple[Life, Operated]:
    """The next life, with another file."""
    old.declared_core = core
    one = old.again()
    return one, Operated(one.broker)


def test_it_is_there_after_a_restart_as_it_was_changed() -> None:
    one = Life("", instead=QUEUES)
    operated = Operated(one.broker)
    operated.do("createDivert", name="d", address="q", forwarding_address="r")
    operated.do("updateDivert", name="d", forwarding_address="s", exclusive=True, routing_type="anycast")
    operated.do("createDivert", name="gone", address="q", forwarding_address="r")
    operated.do("destroyDivert", name="gone")
    one, operated = after(one)
    assert names(operated) == ["d"]
    one.send("x")
    assert counts(operated) == (0, 0, 1)
    operated.do("destroyDivert", name="d")
    one, operated = after(one)
    assert names(operated) == []


def test_one_that_the_file_declares_is_what_the_file_says() -> None:
    one = Life("", instead=QUEUES, core=DECLARED)
    operated = Operated(one.broker)
    operated.do("updateDivert", name="d", forwarding_address="s")
    one.send("x")
    assert counts(operated) == (1, 0, 1)
    one, operated = after(one, DECLARED)
    assert operated.do("listDiverts")[0]["forwardingAddress"] == "r"
    operated.do("destroyDivert", name="d")
    assert names(operated) == []
    one, operated = after(one, DECLARED)
    assert names(operated) == ["d"]


def test_one_that_the_file_declares_only_for_a_while() -> None:
    """What an operator made does not go because a file changed."""
    one = Life("", instead=QUEUES)
    operated = Operated(one.broker)
    operated.do("createDivert", name="d", address="q", forwarding_address="s")
    one, operated = after(one, DECLARED)
    assert operated.do("listDiverts")[0]["forwardingAddress"] == "r"
    one, operated = after(one)
    assert operated.do("listDiverts")[0]["forwardingAddress"] == "s"


def test_a_journal_that_is_compacted_keeps_it() -> None:
    one = Life("", instead=QUEUES)
    operated = Operated(one.broker)
    operated.do("createDivert", name="d", address="q", forwarding_address="s")
    for number in range(200):
        one.send(f"{number}" * 500, to="/queue/r")
        operated.do("queue.removeAllMessages", queue="r")
    one, operated = after(one)
    assert names(operated) == ["d"]


# ---- at a reload -------------------------------------------------------------------------------------


FORCE = """<address-settings><address-setting match='#'><config-delete-diverts>FORCE</config-delete-diverts>
<config-delete-addresses>FORCE</config-delete-addresses></address-setting></address-settings>"""


def test_a_reload_leaves_it_alone() -> None:
    one, operated = operated_bench(core=QUEUES + DECLARED)
    operated.do("createDivert", name="e", address="new", forwarding_address="s")
    operated.do("createDivert", name="f", address="q", forwarding_address="s")
    redeploy(one.world.broker, configuration(QUEUES + FORCE))
    assert sorted(names(operated)) == ["e", "f"]
    one.send("x", to="/queue/new")
    one.send("y")
    assert counts(operated) == (1, 0, 2)


def test_a_reload_brings_back_what_the_file_declares() -> None:
    one, operated = operated_bench(core=QUEUES + DECLARED)
    operated.do("updateDivert", name="d", forwarding_address="s")
    redeploy(one.world.broker, configuration(QUEUES + DECLARED))
    assert operated.do("listDiverts")[0]["forwardingAddress"] == "r"
    operated.do("destroyDivert", name="d")
    redeploy(one.world.broker, configuration(QUEUES + DECLARED))
    assert names(operated) == ["d"]


def test_a_file_that_begins_and_ceases_to_declare_it() -> None:
    one, operated = operated_bench(core=QUEUES)
    operated.do("createDivert", name="d", address="q", forwarding_address="s")
    redeploy(one.world.broker, configuration(QUEUES + DECLARED.replace("<address>q", "<address>s")))
    (row,) = operated.do("listDiverts")
    assert (row["address"], row["forwardingAddress"]) == ("s", "r")
    redeploy(one.world.broker, configuration(QUEUES + FORCE))
    (row,) = operated.do("listDiverts")
    assert (row["address"], row["forwardingAddress"]) == ("q", "s")
    one.send("x")
    assert counts(operated) == (1, 0, 1)
