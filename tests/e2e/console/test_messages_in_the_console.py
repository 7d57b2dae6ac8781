"""Messages, dead letters and settings in the console. A body is text, whatever it looks like."""

from __future__ import annotations

import json
import urllib.request
from typing import Final

import pytest

from artemis_py.management.table import OPERATIONS
from tests.e2e.console.screen import Screen
from tests.e2e.management.told import Told
from tests.kit.browser import why_no_browser
from tests.kit.client import StompSocket
from tests.kit.process import BrokerProcess

IDS: Final = {operation.id for operation in OPERATIONS}
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]
browses = pytest.mark.skipif("queue.browse" not in IDS, reason="this broker has no operation to browse")
retries = pytest.mark.skipif("retryDeadLetters" not in IDS, reason="this broker has no operation to retry dead letters")
explains = pytest.mark.skipif("getAddressSettingsAsJSON" not in IDS, reason="this broker does not tell its settings")
creates = pytest.mark.skipif("createQueue" not in IDS, reason="this broker has no operation to create queues")
asks_why = pytest.mark.skipif("queue.whyNotDelivered" not in IDS, reason="this broker has no reasons")
reloads = pytest.mark.skipif("getConfiguration" not in IDS, reason="this broker does not read its file again")
HTML: Final = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\"><b>bold</b>"


@browses
def test_a_body_that_is_markup_is_text(screen: Screen) -> None:
    Told(screen.broker).send("/queue/orders", [HTML], evil=HTML)
    screen.open("/queues/orders")
    screen.sees(HTML[:40])
    screen.run("document.querySelector('[aria-label=Messages] .row-body').click()")
    screen.until("the body", "return document.getElementById('body') !== null")
    assert screen.run("return document.getElementById('body').textContent") == HTML
    assert screen.run("return document.querySelectorAll('#content script, #content img, #content b').length") == 0
    assert "taken" not in screen.run("return document.title")
    assert screen.complaints() == []


@browses
def test_json_is_put_in_order_and_a_selector_finds_it(screen: Screen) -> None:
    value = {"order": 7, "lines": [{"sku": "A-17"}], "note": "<i>none</i>"}
    Told(screen.broker).send("/queue/jobs", [json.dumps(value)], country="DE")
    Told(screen.broker).send("/queue/jobs", ["plain"], country="FR")
    screen.open("/queues/jobs")
    screen.sees("2 match")
    screen.types("#selector", "country = 'DE'")
    screen.press("Refresh")
    screen.sees("1 match")
    screen.run("document.querySelector('[aria-label=Messages] .row-body').click()")
    screen.until("the body", "return document.getElementById('body') !== null")
    text = screen.run("return document.getElementById('body').textContent")
    assert text == json.dumps(value, indent=2)
    screen.sees("country", "Life of the message", "Show")
    screen.go("/queues/jobs")
    screen.types("#selector", "country =")
    screen.press("Refresh")
    screen.sees("the filter makes no sense")


@browses
def test_a_message_is_removed(screen: Screen) -> None:
    Told(screen.broker).send("/queue/DLQ", ["unwanted"])
    screen.open("/queues/DLQ")
    screen.sees("1 match")
    screen.run("document.querySelector('[aria-label=Messages] .row-body').click()")
    screen.act("Remove")
    number = screen.run("return document.querySelector('dialog strong').innerText")
    screen.types("#action-name", number)
    screen.press("Remove", "dialog")
    screen.sees("has no message", "This was its last state.")


@retries
def test_dead_letters_go_back_after_a_dry_run(screen: Screen) -> None:
    with StompSocket(screen.broker.port) as client:
        client.connect()
        client.subscribe("/queue/failing")
        client.ask("SEND", {"destination": "/queue/failing"}, b"unlucky")
        client.ask("NACK", {"id": client.message().header("ack")})
    screen.open("/dead")
    screen.sees("Too many deliveries", "failing")
    screen.press("Retry", "[aria-label='Dead letters']")
    screen.until("the form", "return document.querySelector('#argument-origin')?.value === 'failing'")
    assert screen.run("return document.querySelector('#argument-rate').value") == "", "one alone needs no rate"
    screen.press("Dry run", "dialog")
    screen.sees("Dry run: nothing changed", "Preview")
    with urllib.request.urlopen(f"{screen.broker.url}/api/queues/failing", timeout=120) as answer:
        assert json.load(answer)["messageCount"] == 0, "a dry run changes nothing"
    screen.press("Retry", "dialog .dialog-foot")
    screen.sees("Retry: done.")
    screen.press("Close", "dialog")
    screen.sees_not("Too many deliveries")
    with urllib.request.urlopen(f"{screen.broker.url}/api/queues/failing", timeout=120) as answer:
        assert json.load(answer)["messageCount"] == 1


def test_a_rate_is_proposed_for_many(screen: Screen) -> None:
    with StompSocket(screen.broker.port) as client:
        client.connect()
        client.subscribe("/queue/failing")
        for _ in range(11):
            client.ask("SEND", {"destination": "/queue/failing"}, b"unlucky")
            client.ask("NACK", {"id": client.message().header("ack")})
    screen.open("/dead")
    screen.press("Retry all")
    screen.sees("Proposed: start slowly")
    assert screen.run("return document.querySelector('#argument-rate').value") == "10"
    screen.press("Cancel", "dialog")
    urllib.request.urlopen(urllib.request.Request(f"{screen.broker.url}/api/queues/DLQ/purge", method="POST")).close()


@explains
def test_settings_have_their_line(screen: Screen) -> None:
    screen.open("/settings/orders")
    screen.sees("max-delivery-attempts", "Set at", "default")
    screen.types("#filter", "ring")
    screen.sees("default-ring-size")


@creates
def test_a_queue_is_created(screen: Screen) -> None:
    screen.open("/queues")
    screen.press("Create")
    screen.types("#argument-name", "fresh")
    screen.press("Create", "dialog")
    screen.until("the result", "return document.getElementById('action-result') !== null")
    screen.press("Close", "dialog")
    screen.sees("fresh")


@asks_why
def test_reasons_are_shown_with_what_helps(screen: Screen) -> None:
    Told(screen.broker).send("/queue/waiting", ["x"])
    screen.open("/queues/waiting?why")
    screen.sees("no-consumer", "Remedy:")
    screen.press("Why growing")
    screen.sees("What comes into a queue and leaves it", "Answer")
    assert screen.complaints() == []


@reloads
def test_the_configuration_tells_what_is_wrong_with_the_file(screen: Screen, broker: BrokerProcess) -> None:
    """And nothing while nothing is."""
    screen.open("/configuration")
    screen.sees("is valid", "The file is in force.")
    file = broker.log.parent / "broker.xml"
    text = file.read_text("utf-8")
    try:
        file.write_text(text.replace("<max-delivery-attempts>1<", "<max-delivery-attempts>one<"), "utf-8")
        screen.sees("has a wrong value", "has errors", "broker.xml:")
    finally:
        file.write_text(text, "utf-8")
    screen.sees("is valid", "The file is in force.")
