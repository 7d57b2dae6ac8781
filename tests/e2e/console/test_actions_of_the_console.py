"""What can be done in the console: each change, the lines that do the same, and keys."""

from __future__ import annotations

import json
import shlex
import subprocess
import urllib.request

import pytest

from tests.e2e.console.screen import Screen
from tests.e2e.management.told import Told
from tests.kit.browser import why_no_browser
from tests.kit.client import Closed, StompSocket
from tests.kit.forks import run_text
from tests.kit.process import WAIT_S, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]


def _run(line: str) -> None:
    """Carries out a line as a shell does."""
    words = shlex.split(line)
    if words[0] == "artemis-py":
        done = run_text(words[1:], timeout=120)
    else:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def _lines(screen: Screen) -> list[str]:
    return list(screen.run("return [...document.querySelectorAll('dialog .lines code')].map((it) => it.textContent)"))


def test_pause_and_resume(screen: Screen) -> None:
    screen.open("/queues/orders")
    screen.act("Pause")
    screen.sees("Deliver nothing of a queue until it is resumed", "From a shell")
    screen.press("Pause", "dialog")
    eventually("a paused queue", lambda: Told(screen.broker).queue("orders")["paused"], bool, WAIT_S)
    screen.press("Close", "dialog")
    screen.sees("\npaused\n")
    screen.act("Resume")
    screen.press("Resume", "dialog")
    eventually(
        "a queue that is not", lambda: Told(screen.broker).queue("orders")["paused"], lambda it: it is False, WAIT_S
    )


@pytest.mark.parametrize("which", [0, 1], ids=["command", "curl"])
def test_the_lines_do_the_same(screen: Screen, which: int) -> None:
    screen.open("/queues/orders")
    screen.act("Pause")
    screen.until("lines", "return document.querySelectorAll('dialog .lines code').length === 2")
    _run(_lines(screen)[which])
    assert Told(screen.broker).queue("orders")["paused"]
    screen.press("Cancel", "dialog")
    screen.act("Resume")
    screen.until("lines", "return document.querySelectorAll('dialog .lines code').length === 2")
    _run(_lines(screen)[which])
    assert not Told(screen.broker).queue("orders")["paused"]


def test_a_purge_says_how_many_and_wants_the_name(screen: Screen) -> None:
    Told(screen.broker).send("/queue/orders", "012")
    screen.open("/queues/orders")
    screen.until("its messages", "return document.querySelector('.tile .figure')?.innerText === '3'")
    screen.act("Purge")
    screen.sees("This destroys 3 messages of queue orders. It cannot be undone.")
    assert screen.run("return document.getElementById('action-run').disabled"), "before the name is typed"
    screen.types("#action-name", "order")
    assert screen.run("return document.getElementById('action-run').disabled"), "another name"
    assert Told(screen.broker).queue("orders")["messageCount"] == 3
    screen.types("#action-name", "orders")
    screen.press("Purge", "dialog")
    screen.sees("Removed: 3")
    assert Told(screen.broker).queue("orders")["messageCount"] == 0
    screen.press("Close", "dialog")
    screen.until("no messages", "return document.querySelector('.tile .figure')?.innerText === '0'")


def test_a_move_says_how_many_and_wants_the_name(screen: Screen) -> None:
    """The count follows the filter, which has the broker look."""
    Told(screen.broker).send("/queue/orders", "0123")
    screen.open("/queues/orders")
    screen.until("its messages", "return document.querySelector('.tile .figure')?.innerText === '4'")
    screen.act("Move")
    screen.sees("This moves 4 messages of queue orders.")
    screen.types("#argument-count", "3")
    screen.sees("This moves 3 messages of queue orders.")
    screen.types("#argument-filter", "AMQSize < 0")
    screen.sees("This moves the messages that match", "This moves 0 messages of queue orders.")
    screen.types("#argument-filter", "")
    screen.sees("This moves 3 messages of queue orders.")
    screen.types("#argument-target", "jobs")
    assert screen.run("return document.getElementById('action-run').disabled"), "before the name is typed"
    screen.types("#action-name", "orders")
    screen.press("Move", "dialog")
    screen.sees("Move orders: done.")
    assert (Told(screen.broker).queue("orders")["messageCount"], Told(screen.broker).queue("jobs")["messageCount"]) == (
        1,
        3,
    )
    for name in ("orders", "jobs"):
        urllib.request.urlopen(
            urllib.request.Request(f"{screen.broker.url}/api/queues/{name}/purge", method="POST")
        ).close()


@pytest.mark.parametrize("which", [0, 1], ids=["command", "curl"])
def test_the_lines_of_what_destroys_do_it_without_asking(screen: Screen, which: int) -> None:
    """As the button does, which has asked already."""
    Told(screen.broker).send("/queue/orders", "01")
    screen.open("/queues/orders")
    screen.act("Purge")
    screen.until("lines", "return document.querySelectorAll('dialog .lines code').length === 2")
    assert "queue purge orders --yes" in _lines(screen)[0]
    _run(_lines(screen)[which])
    assert Told(screen.broker).queue("orders")["messageCount"] == 0
    screen.press("Cancel", "dialog")


def test_a_refusal_is_shown_where_it_happens(screen: Screen) -> None:
    """A queue with a consumer is not deleted."""
    with StompSocket(screen.broker.port) as client:
        client.connect()
        client.subscribe("/queue/orders")
        screen.open("/queues/orders")
        screen.act("Delete")
        screen.types("#action-name", "orders")
        screen.press("Delete", "dialog")
        screen.until(
            "what is wrong", "return document.querySelector('dialog .problem')?.innerText.includes('consumer')"
        )
        screen.press("Cancel", "dialog")


def test_delete(screen: Screen) -> None:
    with StompSocket(screen.broker.port) as client:
        client.connect()
        client.ask("SEND", {"destination": "/queue/made"}, b"x")
    screen.open("/queues/made")
    screen.act("Delete")
    screen.types("#action-name", "made")
    screen.press("Delete", "dialog")
    screen.sees("Removed: 1")
    screen.press("Close", "dialog")
    screen.sees("there is no queue 'made'", "It may have been deleted")


def test_close_a_connection(screen: Screen) -> None:
    client = StompSocket(screen.broker.port)
    client.connect(client_id="unwanted")
    screen.open("/connections")
    screen.sees("unwanted")
    number = next(row[0] for row in screen.rows("Connections") if "unwanted" in row)
    screen.go(f"/connections/{number}")
    screen.act("Close")
    screen.types("#action-name", number)
    screen.press("Close", "dialog .dialog-foot")
    assert "An operator has closed this connection" in (client.expect("ERROR").header("message") or "")
    with pytest.raises(Closed):
        client.receive()


def test_a_form_is_made_from_the_description(screen: Screen) -> None:
    """A look with all its arguments, from the page of all operations."""
    screen.open("/operations")
    screen.types("#filter", "queue ls")
    screen.press("queue ls")
    screen.types("#argument-where", "name~ord")
    screen.types("#argument-size", "5")
    screen.press("Show", "dialog")
    screen.sees("Answer", "Persistent size")
    assert "artemis-py queue ls --where 'name~ord' --size 5" in _lines(screen)[0], _lines(screen)
    screen.types("#argument-size", "many")
    screen.press("Show", "dialog")
    screen.sees("size must be a number, not 'many'")


def test_the_palette_finds_queues_pages_and_operations(screen: Screen) -> None:
    screen.open("/")
    screen.sees("Accepting messages.")
    screen.browser.keys(":")
    screen.types("dialog input", "ers ord")
    screen.sees("queue")
    screen.until("the queue", "return document.querySelector('#palette-0')?.innerText.includes('orders')")
    screen.browser.keys("Enter")
    screen.sees("Why is no")  # nothing, or no more: for a minute the messages count that were consumed before


def test_a_search_says_that_it_goes_on_or_failed_and_only_the_last_one_counts(screen: Screen) -> None:
    """Typing on asks once, when it pauses, and gives up what was asked before."""
    screen.open("/operations")
    screen.sees("All operations of this broker.")
    screen.browser.keys(":")
    screen.until("the palette", "return document.querySelector('dialog input') !== null")
    screen.run(
        "window.asked = []; const real = window.fetch; window.fetch = (path, more) => path.includes('name%7E') ?"
        "new Promise((_, refuse) => { window.asked.push(path); window.fail = refuse;"
        "more.signal.onabort = () => { window.gone = path; refuse(more.signal.reason); } }) : real(path, more)"
    )
    screen.run(
        "const it = document.querySelector('dialog input'); for (const text of ['s', 'sv', 'svc 12']) {"
        "it.value = text; it.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    screen.sees("Searching…")
    asked = "return window.asked.filter((path) => path.includes('/api/queues'))"
    (path,) = screen.until(
        "one question", f"{asked}.length > 0 && window.asked.filter((one) => one.includes('queues'))"
    )
    assert "where=name%7Esvc&where=name%7E12&" in path
    screen.types("dialog input", "svc 1")
    screen.until("an abandoned question", "return window.gone?.includes('name%7E12')")
    screen.until("the next one", "return window.asked.at(-1).includes('name%7E1&')")
    screen.run("window.fail(new Error('gone'))")
    screen.sees("Search failed: The broker does not answer.")


def test_keys(screen: Screen) -> None:
    """To a page, to a row, into it, and to the keys themselves."""
    screen.open("/")
    screen.sees("Accepting messages.")
    screen.browser.keys("g", "q")
    screen.sees("With messages", "orders")
    screen.browser.keys("j", "j", "k", "j")
    cursor = "return document.querySelector('[aria-selected=true][aria-rowindex=\"3\"]')?.innerText.split('\\n')[0]"
    name = screen.until("a row", cursor)
    screen.browser.keys("Enter")
    screen.until("its page", f"return document.querySelector('h1')?.innerText === {json.dumps(name)}")
    screen.browser.keys("?")
    screen.sees("Up one level")
    screen.browser.keys("Escape")
    screen.sees_not("Go to a page")
    screen.browser.keys("u")
    screen.sees("With messages", "orders")
    screen.browser.keys("/")
    assert screen.run("return document.activeElement.id") == "filter"


def test_the_theme_is_kept(screen: Screen) -> None:
    screen.open("/")
    screen.sees("Accepting messages.")
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = screen.run(colour)
    screen.browser.keys("t", "t")
    screen.until("dark", f"{colour.replace('return ', 'return (')}) !== {json.dumps(light)}")
    screen.open("/queues")
    screen.sees("With messages", "orders")
    assert screen.run(colour) != light
    screen.browser.keys("t")
    assert screen.run("return localStorage.getItem('artemis-theme')") == "auto"


def test_send(screen: Screen) -> None:
    """A message, and the same again by its line of curl."""
    screen.open("/queues/orders")
    screen.press("Send", ".actions")
    screen.types("#send-body", '{"it\'s": "<b>"}')
    screen.types("#send-headers", "country: DE")
    screen.press("Send", "dialog .dialog-foot")
    result = "document.getElementById('send-result')?.innerText"
    screen.until("where it is", f"return {result} === 'Sent to orders\\norders has 1 message'")
    _run(_lines(screen)[1])
    screen.press("orders", "#send-result")
    screen.until("no dialog", "return document.querySelector('dialog') === null")
    screen.press("Refresh")
    screen.sees("2 match")
    screen.run("document.querySelector('[aria-label=Messages] .row-body').click()")
    screen.until("the body", "return document.getElementById('body') !== null")
    screen.sees("application/json", "country", "DE")
    with urllib.request.urlopen(
        urllib.request.Request(f"{screen.broker.url}/api/queues/orders/purge", method="POST"), timeout=WAIT_S
    ) as answer:
        assert json.load(answer) == {"removed": 2, "inDelivery": 0}


def test_a_password_is_in_no_line_and_no_url(screen: Screen) -> None:
    """The form of a new user hides what is typed, and sends it in the body."""
    screen.open("/users")
    screen.press("Create")
    screen.types("#argument-name", "zoe")
    screen.types("#argument-password", "open sesame")
    assert screen.run("return document.getElementById('argument-password').type") == "password"
    screen.until("lines", "return document.querySelectorAll('dialog .lines code').length === 2")
    command, curl = _lines(screen)
    assert "user create zoe" in command
    assert "PASSWORD" in curl
    assert "sesame" not in command + curl
    screen.press("Create", "dialog")
    screen.sees("\nDone\n")
    with urllib.request.urlopen(f"{screen.broker.url}/api/users?name=zoe", timeout=WAIT_S) as answer:
        assert [row["login"] for row in json.load(answer)["data"]] == ["hash"]
