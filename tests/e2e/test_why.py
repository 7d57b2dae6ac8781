"""``artemis-py why`` and ``artemis-py trace`` against a real broker, and slow consumers that are closed."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from artemis_py.cli.main import main
from artemis_py.testing import ArtemisBroker
from tests.e2e.management.told import Told, operated
from tests.kit.client import Closed, connected
from tests.kit.forks import run_text
from tests.kit.process import DAYS, configuration, for_the_module

pytestmark = pytest.mark.e2e

ADDRESSES = """
      <address name="orders"><anycast><queue name="orders" max-delivery-attempts="1"/></anycast></address>
      <address name="small"><anycast><queue name="small"/></anycast></address>
      <address name="work"><anycast><queue name="work"/></anycast></address>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
"""
SETTINGS = """
      <address-setting match="#"><dead-letter-address>DLQ</dead-letter-address></address-setting>
      <address-setting match="small">
        <max-size-messages>1</max-size-messages>
        <address-full-policy>BLOCK</address-full-policy>
      </address-setting>
      <address-setting match="work">
        <slow-consumer-threshold>5</slow-consumer-threshold>
        <slow-consumer-check-period>1</slow-consumer-check-period>
        <slow-consumer-policy>KILL</slow-consumer-policy>
      </address-setting>
"""


text_of = partial(configuration, addresses=ADDRESSES, settings=SETTINGS, kept=DAYS)


told = for_the_module(lambda folder: operated(text_of(folder=folder), folder))


def line(told: Told, text: str) -> str:
    lines = told.file.read_text().splitlines()
    return f"{told.file}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def reasons(told: Told, path: str) -> dict[str, dict[str, Any]]:
    return {row["reason"]: row for row in told.broker.api(path)["data"]}


def test_a_blocked_sender(told: Told) -> None:
    with told.client(client_id="sender") as client:
        client.ask("SEND", {"destination": "/queue/small"}, b"x")
        client.send("SEND", {"destination": "/queue/small"}, b"x")
        number = told.ask("GET", "/api/connections?where=clientID=sender")[1]["data"][0]["connectionID"]
        told.broker.eventually(
            "it waits",
            lambda: reasons(told, "/api/addresses/small/why/blocked").get("max-messages", {}).get("sentence", ""),
            lambda sentence: "1 connection waits for it" in sentence,
        )
        found = reasons(told, f"/api/connections/{number}/why/blocked")["max-messages"]
        assert (found["used"], found["limit"], found["setting"]) == (1, 1, "max-size-messages")
        assert found["place"] == line(told, "<max-size-messages>") + " (address-setting small)"
        printed = told.command("why", "blocked", "small").stdout
        assert printed.startswith("max-messages  it has 1 of 1 messages in memory: senders wait")
        assert f"setting  max-size-messages = 1 messages  ({line(told, '<max-size-messages>')}" in printed
        assert "1 connection waits for room (small)" in reasons(told, "/api/why/slow")["senders-wait"]["sentence"]
        assert told.broker.metrics("artemis_blocked_senders", broker="e2e", reason="max-messages") == [1]


def test_an_address_that_an_operator_blocked(told: Told) -> None:
    assert told.command("address", "block", "orders").returncode == 0
    with told.client(client_id="patient") as client:
        client.send("SEND", {"destination": "/queue/orders"}, b"x")
        told.broker.await_metric(1, "artemis_blocked_senders", reason="address-blocked")
        printed = told.command("why", "blocked", "orders").stdout
        assert printed.startswith("address-blocked  an operator has blocked the address: senders wait; 1 connection")
        assert "artemis-py address unblock orders" in printed
        assert told.command("address", "unblock", "orders").returncode == 0
        assert "not-blocked" in reasons(told, "/api/addresses/orders/why/blocked")
        told.broker.eventually(
            "it came", lambda: told.ask("GET", "/api/queues/orders")[1]["messageCount"], lambda count: count == 1
        )
    assert told.command("queue", "purge", "orders", "--yes").returncode == 0


def test_the_life_of_a_dead_letter(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    with told.client(client_id="shop") as client:
        client.ask("SEND", {"destination": "/queue/orders", "persistent": "true", "order": "17"}, b"two coffees")
        client.ask("SUBSCRIBE", {"destination": "/queue/orders", "id": "1", "ack": "client-individual"})
        message = client.expect("MESSAGE")
        (consumer,) = told.ask("GET", "/api/consumers")[1]["data"]
        client.ask("NACK", {"id": message.header("ack")})
        printed = told.command("trace", message.header("message-id") or "")
        assert (printed.returncode, printed.stderr) == (0, "")
        *rows, letter = printed.stdout.splitlines()
        words = [row.split()[2] for row in rows]
        assert words == ["arrived", "delivered", "failed", "dead", "copied", "there"]
        assert "(client-id shop)" in rows[0]
        assert f"[consumer {consumer['id']} of " in rows[1], "the number that lists have, too"
        assert rows[-1].endswith("DLQ: still there")
        number = rows[-1].split()[1]
        assert letter == f"message {number}:  artemis-py message show DLQ {number} --url {told.broker.url}"
        assert "two coffees" in run_text(letter.split()[3:], timeout=120).stdout
        original = told.command("trace", number).stdout.splitlines()[-1]
        assert original == f"its original:  artemis-py trace {rows[0].split()[1]} --url {told.broker.url}"
        assert run_text(original.split()[3:], timeout=120).stdout == printed.stdout
        assert main(["trace", "--where", "order = '17'", "--json", "--url", told.broker.url]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [row["what"] for row in found["data"]] == words, "the same, read from outside"
        dead = reasons(told, "/api/queues/DLQ/why/dead")["max_deliveries"]
        assert (dead["setting"], dead["place"]) == ("max-delivery-attempts", line(told, 'name="orders"'))
    assert main(["trace", "99999", "--url", told.broker.url]) == 1
    nothing = capsys.readouterr()
    assert nothing.out == ""
    assert "the log has no such message" in nothing.err
    directories = [str(told.broker.log.with_name(name)) for name in ("journal", "kept")]
    assert main(["trace", message.header("message-id") or "", "--journal", *directories]) == 0
    assert "copied" in capsys.readouterr().out
    assert main(["trace"]) == 1
    with pytest.raises(SystemExit):
        main(["trace", "x-y"])
    assert "'x-y' is not a message-id" in capsys.readouterr().err


def test_a_slow_consumer_is_closed(told: Told) -> None:
    with told.client() as sender:
        for _ in range(40):
            sender.ask("SEND", {"destination": "/queue/work"}, b"x")
    client = told.client(client_id="sleepy")
    client.ask("SUBSCRIBE", {"destination": "/queue/work", "id": "1", "ack": "client-individual"})
    for _ in range(40):
        client.expect("MESSAGE")
    error = client.expect("ERROR")
    said = error.header("message") or ""
    assert "is slow" in said
    assert "it settled 0 messages in" in said
    assert "slow-consumer-threshold is 5 MESSAGES_PER_SECOND" in said
    with pytest.raises(Closed):
        client.expect("MESSAGE")
    told.broker.await_said("ART-1011 queue=work reason=slow-consumer")
    assert told.queue("work")["messageCount"] == 40


def test_the_plugin_says_what_the_operation_says() -> None:
    """Word for word, of a broker with a reason of each kind."""
    with ArtemisBroker(config=configuration(), queues=["orders"]) as broker:
        assert broker.http_url is not None
        with connected(broker.port, client_id="desk") as client:
            client.subscribe("orders", selector="x = '1'", ack="client-individual")
            for number in range(3):
                broker.send("orders", "x", x=number)
            broker.send("orders", "later", AMQ_SCHEDULED_DELAY=60_000)
            client.expect("MESSAGE")
            plugin = broker.queue("orders").why_not_delivered()
            asked = run_text(
                ["why", "not-delivered", "orders", "--json", "--url", broker.http_url], timeout=60, check=True
            )
    rows = json.loads(asked.stdout)["data"]
    told = [f"{row['about']}: {row['sentence']}" if row["about"] else row["sentence"] for row in rows]
    # figures change from one moment to the next; in the first millisecond there is none
    figures = re.compile(r"; the oldest came \S+ s ago|(?<!\S)[\d.]+(?!\S)")
    assert [figures.sub("", text) for text in told] == [figures.sub("", text) for text in plugin.splitlines()]
    assert [row["reason"] for row in rows] == ["unwanted", "held", "scheduled"]


PAGING = """
      <address-setting match="deep">
        <max-size-messages>1</max-size-messages>
        <address-full-policy>PAGE</address-full-policy>
        <max-read-page-messages>1</max-read-page-messages>
        <page-limit-messages>3</page-limit-messages>
        <page-full-policy>FAIL</page-full-policy>
      </address-setting>
"""


def test_pages(tmp_path: Path) -> None:
    """Messages that wait in pages, and the limit of pages."""
    text = text_of(folder=tmp_path).replace("<address-settings>", f"<address-settings>{PAGING}")
    with operated(text, tmp_path) as told, told.client() as client:
        for _ in range(4):
            client.ask("SEND", {"destination": "/queue/deep", "persistent": "true"}, b"x")
        found = reasons(told, "/api/addresses/deep/why/blocked")["page-limit-messages"]
        assert (found["used"], found["limit"]) == (3, 3)
        assert found["place"] == line(told, "<page-limit-messages>") + " (address-setting deep)"
        assert "senders get an ERROR (page-full-policy FAIL)" in found["sentence"]
        one_at_a_time = {"destination": "/queue/deep", "id": "1", "ack": "client-individual"}
        client.ask("SUBSCRIBE", {**one_at_a_time, "consumer-window-size": "0"})
        first = client.expect("MESSAGE")
        client.ask("ACK", {"id": first.header("ack")})
        client.expect("MESSAGE")
        found = reasons(told, "/api/queues/deep/why/not-delivered")
        assert found["read-ahead"]["setting"] == "max-read-page-messages"
        assert found["read-ahead"]["place"].startswith(line(told, "<max-read-page-messages>"))
        assert found["read-ahead"]["used"] >= 1
        assert {"groups", "consumer-priority", "exclusive", "due", "page"}.isdisjoint(found)
        status, answer = told.ask("GET", "/api/queues/deep/why/not-delivered?message=4")
        assert (status, answer["data"][0]["reason"]) == (200, "in-pages")
