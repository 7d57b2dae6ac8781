"""Settings in force with the line that decided them, and what the broker tells of itself."""

from __future__ import annotations

import json

import pytest

from artemis_py.errors import BadRequestError, BrokerError, NotFoundError
from artemis_py.management.operations.broker import in_words
from tests.kit.bench import Bench
from tests.unit.management.operated import Operated


def test_the_line_that_decided() -> None:
    one = Bench("max-consumers='3'", settings="<max-delivery-attempts>4</max-delivery-attempts>")
    operated = Operated(one.world)
    (row,) = operated.do("getAddressSettingsAsJSON", address="any.thing", where="isDefault=false")
    assert (row["name"], row["value"], row["match"]) == ("max-delivery-attempts", "4", "#")
    line = int(row["declaredAt"].rpartition(":")[2])
    assert line > 0
    rows = operated.do("getAddressSettingsAsJSON", address="q::q", where="isDefault=false")
    assert {row["name"]: (row["value"], row["match"]) for row in rows} == {
        "max-consumers": ("3", None), "max-delivery-attempts": ("4", "#"),
    }  # fmt: skip


def test_what_an_operator_decided() -> None:
    operated = Operated(Bench("max-consumers='3' purge-on-no-consumers='true'").world)
    operated.do("updateQueue", queue="q", max_consumers=5, filter_string="a = 1")
    operated.do("queue.setRingSize", queue="q", ring_size=7)
    rows = operated.do("getAddressSettingsAsJSON", address="q::q", where="isDefault=false")
    shown = {row["name"]: (row["value"], row["declaredAt"]) for row in rows}
    by = "an operator or a client"
    assert shown.pop("purge-on-no-consumers")[0] == "true"
    assert shown == {"max-consumers": ("5", by), "filter": ("a = 1", by), "ring-size": ("7", by)}


def test_settings_of_nothing() -> None:
    operated = Operated(Bench().world)
    with pytest.raises(NotFoundError, match="there is no queue 'x'"):
        operated.do("getAddressSettingsAsJSON", address="q::x")
    with pytest.raises(BadRequestError, match="address is the name of an address"):
        operated.do("getAddressSettingsAsJSON", address="")


def test_who_may_do_what() -> None:
    setting = '<security-setting match="q"><permission type="send" roles="a,b"/></security-setting>'
    one = Bench(core=f"<security-settings>{setting}</security-settings>")
    rows = {row["permission"]: row for row in Operated(one.world).do("getRolesAsJSON", address="q")}
    assert (rows["send"]["roles"], rows["send"]["match"], rows["consume"]["roles"]) == ("a,b", "q", "")


def test_the_broker() -> None:
    one = Bench()
    operated = Operated(one.world)
    one.send("a")
    one.subscribe("c")
    one.settle("c", one.messages("c")[0])
    operated.do("createQueue", name="gone")
    one.world.broker.queues["gone"].contents.counters.added = 5
    operated.do("destroyQueue", queue="gone")
    row = operated.do("getBroker")
    assert (row["uptime"], row["started"], row["totalConsumerCount"]) == ("1 day 1 hour", True, 1)
    assert (row["totalMessagesAdded"], row["totalMessagesAcknowledged"], row["totalMessageCount"]) == (6, 1, 0)
    assert json.loads(row["status"])["server"]["state"] == "STARTED"


def test_without_a_journal() -> None:
    operated = Operated(Bench().world)
    for operation in ("getJournal", "compact"):
        with pytest.raises(BrokerError, match="this broker has no journal: persistence-enabled is false"):
            operated.do(operation)
    assert operated.do("listDisks") == []


def test_ten_thousand_queues_in_steps() -> None:
    """No step looks at many of them."""
    one = Bench()
    operated = Operated(one.world)
    for number in range(2_000):
        one.world.broker.resolver.obtain_queue(f"a{number}", f"a{number}", "ANYCAST")
    for operation in ("getBroker", "listDiverts", "listConsumers"):
        operated.do(operation)
        assert operated.steps >= 8, operation
    operated.do("listQueues", where="messageCount>0")
    assert operated.steps >= 8


@pytest.mark.parametrize(
    ("span_ms", "words"),
    [
        (0, "0 seconds"), (999, "0 seconds"), (1_000, "1 second"), (61_000, "1 minute 1 second"),
        (3_600_000, "1 hour"), (3_605_000, "1 hour"), (90_061_000, "1 day 1 hour"), (2 * 86_400_000, "2 days"),
    ],
)  # fmt: skip
def test_spans_in_words(span_ms: int, words: str) -> None:
    assert in_words(span_ms) == words
