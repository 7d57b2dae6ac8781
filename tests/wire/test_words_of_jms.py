"""What docs/from-artemis.md says of JMS' headers: by which name a selector finds each, and by which it does not."""

from __future__ import annotations

import re

import pytest

from tests.kit.bench import Bench
from tests.kit.sources import ROOT

PAGE = (ROOT / "docs" / "from-artemis.md").read_text("utf-8")
SENT = (
    "correlation-id:x", "reply-to:/queue/r", "type:x", "priority:7", "expires:9999999999999", "persistent:true",
    "JMSXGroupID:x", "price:7", "JMSCorrelationID:y",
)  # fmt: skip
TABLE = PAGE.partition("### What JMS calls")[2].partition("| JMS | header |")[2].partition("\n\n")[0]
FINDS = [
    selector
    for row in TABLE.splitlines()[2:]
    for selector in re.findall(r"`([^`]+)`", row.rstrip("|").rpartition("|")[2])
]
MISSES = ("JMSPriority = 7", "JMSTimestamp > 0", "JMSExpiration > 0", "JMSDeliveryMode = 'PERSISTENT'", "price > 5")


def test_the_page_has_them() -> None:
    assert len(FINDS) == 10


@pytest.mark.parametrize("selector", [*FINDS, "JMSCorrelationID = 'y'"])
def test_a_selector_finds_it(selector: str) -> None:
    bench = Bench()
    bench.send("a", *SENT)
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/queue/q", f"selector:{selector.replace(':', chr(92) + 'c')}")
    assert bench.got("c") == ["a"]


@pytest.mark.parametrize("selector", MISSES)
def test_a_selector_does_not(selector: str) -> None:
    bench = Bench()
    bench.send("a", *SENT)
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/queue/q", f"selector:{selector}")
    assert bench.got("c") == []


def test_headers_of_jms_travel_and_the_broker_sets_its_own() -> None:
    bench = Bench()
    bench.send("a", *SENT)
    bench.subscribe("c")
    (frame,) = bench.messages("c")
    told = {name: frame.header(name) for name in ("correlation-id", "JMSCorrelationID", "JMSXDeliveryCount")}
    assert told == {"correlation-id": "x", "JMSCorrelationID": "y", "JMSXDeliveryCount": "1"}
    assert frame.header("timestamp")
