"""The life of a message in the console, and the other pages of a broker that keeps its log and knows its users."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.console.screen import Screen
from tests.kit.browser import why_no_browser
from tests.kit.client import StompSocket
from tests.kit.process import DAYS, HTTP, STOMP, anycast, configuration, for_the_module, running

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]
ADDRESSES = "".join(map(anycast, ("failing", "DLQ", "shut")))
SETTINGS = """<address-setting match="failing">
<dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts></address-setting>"""
USERS = {
    "artemis-users.properties": b"ann = ENC(1024:aa:bb)\nbob = secret\n",
    "artemis-roles.properties": b"amq = ann,bob\nnight-shift = ann\n",
}
ACCEPTORS = {"stomp": f"{STOMP};connectionsAllowed=20", "http": HTTP}
TEXT = configuration(ACCEPTORS, folder=Path("data"), kept=DAYS, addresses=ADDRESSES, settings=SETTINGS)


broker = for_the_module(partial(running, TEXT, beside=USERS))


def _dead_letter(screen: Screen, client_id: str) -> tuple[str, str]:
    """The message-id of a message that died, and the number of its copy."""
    with StompSocket(screen.broker.port) as client:
        client.connect(client_id=client_id)
        client.ask("SEND", {"destination": "/queue/failing", "persistent": "true"}, b"coffee")
        client.subscribe("/queue/failing")
        message = client.message()
        client.ask("NACK", {"id": message.header("ack")})
    copy = screen.broker.ask("GET", "/api/queues/DLQ/messages").json["data"][-1]["messageID"]
    return message.header("message-id") or "", str(copy)


def test_the_life_of_a_message_that_has_gone(screen: Screen) -> None:
    message_id, copy = _dead_letter(screen, "<b>shop</b>")
    screen.open("/life")
    screen.sees("Enter the number of a message")
    screen.types("#message", message_id)
    screen.press("Show", "form")
    screen.sees("sent to failing", "(client-id <b>shop</b>)", "delivery 1 failed: NACK", "still there")
    words = screen.run("return [...document.querySelectorAll('.moment .chip')].map((it) => it.innerText)")
    assert words == ["arrived", "delivered", "failed", "dead", "copied", "there"]
    assert screen.run("return document.querySelectorAll('.life b').length") == 0
    screen.sees(f"artemis-py trace {message_id.rpartition('-')[2]}", f"message {copy}")
    screen.press(f"message {copy}")
    screen.sees(f"Life of message {copy}")
    screen.press(f"Life of its original, message {message_id.rpartition('-')[2]}")
    screen.until("its original", "return document.querySelectorAll('.moment').length === 6")
    screen.go("/life/999999999")
    screen.sees("The log has no such message", "persistent messages on durable queues, since")
    assert screen.complaints() == []


@pytest.mark.parametrize(("place", "field"), [("/life", "#message"), ("/settings", "#address")])
def test_what_is_written_stays_while_the_page_is_drawn_again(screen: Screen, place: str, field: str) -> None:
    screen.open(place)
    screen.types(field, "42")
    drawn = "return document.querySelector('.side-foot').innerText"
    before = screen.run(drawn)
    screen.until("the page drawn again", f"{drawn} !== {json.dumps(before)}")
    assert screen.run(f"return document.querySelector('{field}').value") == "42"


def test_ways_to_the_life_of_a_message(screen: Screen) -> None:
    """From dead letters, over their messages; from one of them; from one that has gone; and from the palette."""
    message_id, copy = _dead_letter(screen, "clerk")
    number = message_id.rpartition("-")[2]
    screen.open("/dead")
    screen.sees("Too many deliveries")
    screen.run("document.querySelector('[aria-label=\"Dead letters\"] .cell.number a').click()")
    screen.until(
        "the selector", "return document.querySelector('#selector')?.value.includes(\"_AMQ_ORIG_QUEUE = 'failing'\")"
    )
    rows = "[...document.querySelectorAll('[aria-label=Messages] .row-body')]"
    row = f"{rows}.find((it) => it.innerText.startsWith('{copy}'))"
    screen.until("the message", f"return {row} !== undefined")
    screen.run(f"[...{row}.querySelectorAll('a')].find((it) => it.innerText === 'Trace').click()")
    screen.sees(f"Life of message {number}", "arrived")
    screen.go(f"/queues/DLQ/messages/{copy}")
    screen.press(f"Life of its original, message {number}")
    screen.sees("delivery 1 failed: NACK")
    screen.go("/queues/failing/messages/" + number)
    screen.press("Show")
    screen.sees("delivery 1 failed: NACK")
    screen.go("/")
    screen.sees("Accepting messages.")
    screen.browser.keys(":")
    screen.types("dialog input", message_id)
    screen.until("the entry", f"return document.querySelector('#palette-0')?.innerText.includes('message {number}')")
    screen.browser.keys("Enter")
    screen.sees("delivery 1 failed: NACK")


def test_a_long_log_is_read_in_parts(screen: Screen) -> None:
    """An answer that is not whole is shown, and the page goes on from there until somebody should say so."""
    screen.open("/life")
    screen.sees("Enter the number of a message")
    screen.run(
        "const real = window.fetch; window.asked = [];"
        "window.fetch = (path, how) => { if (!path.includes('/life')) return real(path, how);"
        " window.asked.push(path); const n = window.asked.length;"
        " const moment = {time: 1, messageID: 7, what: 'failed', queue: 'q', who: '', text: `part ${n}`, original: 0};"
        " const data = [{...moment, lsn: n}]; const more = {isWhole: n === 16, readTo: 100 + n, logBegan: 1};"
        " const told = {count: 1, data, readBytes: 1048576 * n, lostParts: 2, leftOut: 0, ...more};"
        " return Promise.resolve(new Response(JSON.stringify(told))) }"
    )
    screen.types("#message", "7")
    screen.press("Show", "form")
    screen.sees("part 1", "part 15", "15 events; 15.0", "The rest of the log is not read yet")
    screen.sees("2 parts of the log could not be read")
    screen.press("Continue")
    screen.sees("part 16", "16 events")
    screen.sees_not("The rest of the log is not read yet")
    asked = screen.run("return window.asked")
    assert asked[0].endswith("/api/messages/7/life")
    assert [path.partition("?after=")[2] for path in asked[1:]] == [str(100 + n) for n in range(1, 16)]


def test_users(screen: Screen) -> None:
    with StompSocket(screen.broker.port) as client:
        client.connect(login="bob")
        screen.open("/users")
        screen.sees("2 users", "night-shift", "hash", "plain text", "artemis-users.properties:2")
        assert "secret" not in screen.text
        screen.press("Without a hash")
        screen.sees("1 user\n")
        screen.press("bob")
        screen.sees("Connections of this user", "connectionCount", "plain text")
        screen.press("Connections of this user")
        screen.sees("stomp: 1 of 20 connections.", "1 connection\n")
    screen.go("/")
    screen.sees("Connections to stomp")


def test_a_column_is_chosen(screen: Screen) -> None:
    screen.open("/users")
    screen.sees("2 users")
    screen.press("Columns")
    box = "[...document.querySelectorAll('dialog .check')].find((it) => it.innerText.includes('changeable'))"
    screen.until("the column", f"return {box} !== undefined")
    screen.run(f"{box}.querySelector('input').click()")
    screen.press("Close", "dialog")
    screen.sees("Changeable")
    screen.run("localStorage.clear()")


def test_a_blocked_address_says_so(screen: Screen) -> None:
    assert screen.broker.ask("POST", "/api/addresses/shut/block").status == 200
    screen.open("/addresses/shut")
    screen.sees("address-blocked")
    screen.act("Unblock")
    screen.press("Unblock", "dialog")
    screen.press("Close", "dialog")
    screen.sees_not("address-blocked")


def test_the_log_and_its_cursors(screen: Screen) -> None:
    cursor = {"lsn": 1, "owner": "spark on lake", "ttl_s": 60}
    assert screen.broker.ask("PUT", "/log/cursors/lake", cursor).status == 201
    screen.open("/log")
    screen.sees("current", "lake", "spark on lake", "holds", "Has read to")
    screen.press("Remove", "[aria-label=Cursors]")
    screen.sees("This destroys cursor lake, and with it perhaps files that its reader has not read.")
    screen.types("#action-name", "lake")
    screen.press("Delete", "dialog")
    screen.press("Close", "dialog")
    screen.sees("No cursors")
    assert screen.complaints() == []
