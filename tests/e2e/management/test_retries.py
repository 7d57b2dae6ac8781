"""Dead letters go back to the queue they died on and to no other, and an answer and an exit code tell what stayed and
why. The same for moves to targets that keep nothing.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.e2e.management.told import Told, operated
from tests.kit.process import configuration, for_each_test

pytestmark = pytest.mark.e2e

ADDRESSES = """
<address name="graves"><anycast><queue name="graves"/></anycast></address>
<address name="work"><anycast/></address>
<address name="fixed"><anycast><queue name="fixed"/></anycast></address>
<address name="news"><multicast><queue name="news.a"/><queue name="news.b"/></multicast></address>
<address name="both"><anycast><queue name="both.q"/></anycast><multicast><queue name="both.s"/></multicast></address>
<address name="ring"><anycast><queue name="ring" ring-size="1"/></anycast></address>
<address name="nd"><anycast><queue name="nd"><durable>false</durable></queue></anycast></address>
<address name="dropping"><anycast><queue name="dropping"/></anycast></address>
<address name="red"><anycast><queue name="red.q"><filter string="colour = 'red'"/></queue></anycast></address>
<address name="picky"><anycast><queue name="picky"/></anycast></address>
<address name="few"><anycast><queue name="few">
<filter string="_AMQ_ORIG_QUEUE = 'nothing'"/></queue></anycast></address>
"""
SETTINGS = """
<address-setting match="#"><dead-letter-address>graves</dead-letter-address>
<max-delivery-attempts>1</max-delivery-attempts></address-setting>
<address-setting match="fixed"><auto-create-queues>false</auto-create-queues></address-setting>
<address-setting match="picky"><dead-letter-address>few</dead-letter-address></address-setting>
<address-setting match="dropping"><max-size-messages>1</max-size-messages>
<address-full-policy>DROP</address-full-policy></address-setting>
"""


told = for_each_test(partial(operated, configuration(addresses=ADDRESSES, settings=SETTINGS)))
"""A broker on which a message that is refused once is dead."""


def die(told: Told, destination: str) -> None:
    """What is on this queue dies."""
    before = told.queue("graves")["messageCount"]
    with told.client() as client:
        client.subscribe(destination)
        client.ask("NACK", {"id": client.message().header("ack")})
    told.broker.eventually("dead", lambda: told.queue("graves")["messageCount"], lambda count: count == before + 1)


def destroy(told: Told, name: str) -> None:
    status, _ = told.ask("DELETE", f"/api/queues/{name}")
    assert status in (200, 404), "an empty queue that was created by itself may be gone already"


def counts(told: Told, *names: str) -> list[int]:
    return [told.queue(name)["messageCount"] for name in names]


@pytest.mark.parametrize(
    ("destination", "queue"),
    [
        ("/queue/work", "work"),
        ("work\\c\\cspecial", "special"),
        ("/queue/new", "new"),
        ("/queue/both\\c\\cboth.q", "both.q"),
    ],
)
def test_an_anycast_queue_that_is_gone_is_created_again(told: Told, destination: str, queue: str) -> None:
    """As a SEND would do it, also where its address is still there, or has subscriptions, too."""
    told.send(destination, persistent="true")
    die(told, destination)
    destroy(told, queue)
    answer = told.command("dead", "retry")
    assert answer.returncode == 0, answer
    assert counts(told, queue, "graves", "both.s") == [1, 0, 0]


def test_other_subscriptions_do_not_get_it_again(told: Told) -> None:
    """The dead letter of a subscription that is gone stays, and the answer names the subscription."""
    told.send("/topic/news", persistent="true")
    die(told, "news\\c\\cnews.a")
    destroy(told, "news.a")
    status, answer = told.ask("POST", "/api/dead-letters/retry")
    assert (status, answer["retried"]) == (200, 0)
    ((reason, count),) = answer["kept"].items()
    assert (count, "its queue news.a of address news is gone" in reason) == (1, True)
    assert counts(told, "news.b", "graves") == [1, 1]
    done = told.command("dead", "retry")
    assert (done.returncode, "news.a" in done.stdout) == (1, True), done
    assert "operation=retryDeadLetters" in told.broker.said
    assert 'result="retried 0, kept 1"' in told.broker.said
    assert told.ask("POST", "/api/queues/graves/messages/2/retry")[0] == 409
    told.asked("POST", "/api/queues?name=news.a&address=news&routing-type=MULTICAST")
    assert told.command("queue", "retry", "graves").returncode == 0
    assert counts(told, "news.a", "news.b", "graves") == [1, 1, 0]


def test_what_may_not_be_created_stays(told: Told) -> None:
    told.send("/queue/fixed", persistent="true")
    die(told, "/queue/fixed")
    destroy(told, "fixed")
    answer = told.ask("POST", "/api/dead-letters/retry")[1]
    assert list(answer["kept"]) == ["Queue fixed does not exist and auto-create-queues is false for fixed"]
    assert counts(told, "graves") == [1]


def test_some_go_back_and_some_stay(told: Told) -> None:
    """Both are counted, and an exit code of 0 is for all of them."""
    for destination in ("/queue/fixed", "/queue/work"):
        told.send(destination, persistent="true")
        die(told, destination)
    destroy(told, "fixed")
    done = told.command("dead", "retry")
    assert done.returncode == 1
    assert "retried" in done.stdout
    assert counts(told, "work", "graves") == [1, 1]


@pytest.mark.parametrize("verb", ["move", "copy"])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ring", "queue ring dropped it at once"),
        ("dropping", "address dropping is full (max-messages); its policy is DROP"),
        ("red", "no queue of address red takes it"),
        ("work", "address work has no queue, so the messages would be lost"),
    ],
)
def test_a_target_that_keeps_nothing_gets_nothing(told: Told, verb: str, target: str, said: str) -> None:
    """The originals stay as they are."""
    told.send("/queue/ring", ["first"], priority=9, persistent="true")
    told.send("/queue/dropping", ["first"], persistent="true")
    told.send("/queue/fixed", ["original"], priority=1, persistent="true")
    done = told.command("queue", verb, "fixed", target)
    assert done.returncode == 1
    assert said in done.stdout + done.stderr
    assert counts(told, "fixed", "ring", "dropping", "red.q") == [1, 1, 1, 0]
    with told.client() as client:
        client.subscribe("/queue/fixed")
        assert client.message().body == b"original"


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_what_a_ring_gave_up_is_told_with_the_exit_code(told: Told, verb: str) -> None:
    """``moved 3`` is no success if one of them is there. Artemis' bean has one number, and counts as Artemis does."""
    for _ in range(3):
        told.send("/queue/fixed", persistent="true")
    done = told.command("queue", verb, "fixed", "ring")
    assert done.returncode == 1
    assert "gone from queue ring, which keeps 1 message (ring-size): 2" in done.stdout
    assert counts(told, "ring") == [1]
    word = "moved" if verb == "move" else "copied"
    assert f'result="{word} 3, replaced 2"' in told.broker.said
    status, answer = told.ask("POST", f"/api/queues/ring/messages/6/{verb}?target=nd")
    assert (status, answer["replaced"], list(answer["transient"].values())) == (200, {}, [1])
    told.send("/queue/fixed", persistent="true")
    done = told.command("queue", verb, "fixed", "nd", "--count", "1")
    assert done.returncode == 0
    assert "queue nd is not durable: what it has does not survive a restart: 1" in done.stdout


def test_dead_letters_that_a_ring_gave_up_are_told(told: Told) -> None:
    for number in range(2):
        told.send("/queue/ring", [str(number)], persistent="true")
        die(told, "/queue/ring")
    done = told.command("dead", "retry")
    assert done.returncode == 1
    assert "gone from queue ring, which keeps 1 message (ring-size): 1" in done.stdout
    assert counts(told, "ring", "graves") == [1, 0]


def test_a_cause_is_one_of_those_that_there_are(told: Told) -> None:
    """In both spellings: that of headers, and that of settings."""
    told.send("/queue/work", persistent="true")
    die(told, "/queue/work")
    refused = told.command("dead", "retry", "--cause", "max-delivery-attempts")
    assert refused.returncode == 1
    assert "there is no cause 'max-delivery-attempts'; there are max_deliveries, max_cancels" in refused.stderr
    assert told.ask("GET", "/api/dead-letters?cause=max-deliveries")[1]["count"] == 1
    assert told.command("dead", "retry", "--cause", "max-deliveries").returncode == 0
    assert counts(told, "work", "graves") == [1, 0]


def test_a_purge_tells_what_stays(told: Told) -> None:
    for _ in range(3):
        told.send("/queue/fixed", persistent="true")
    with told.client() as client:
        client.subscribe("/queue/fixed", consumer_window_size="0")
        client.message()
        done = told.command("queue", "purge", "fixed", "--yes")
        assert (done.returncode, "inDelivery" in done.stdout) == (1, True)
        assert counts(told, "fixed") == [1]
    expired = told.command("queue", "expire", "fixed", "TRUE")
    assert expired.returncode == 1
    assert "of queue fixed, but for copies at its expiry address, and nobody is here to ask" in expired.stderr


def test_nothing_goes_to_a_dead_letter_address_that_leaves_it_out(told: Told) -> None:
    told.send("/queue/picky", persistent="true")
    status, answer = told.ask("POST", "/api/queues/picky/messages/1/dead")
    assert (status, "no queue of address few takes it" in answer["error"]) == (409, True)
    assert counts(told, "picky", "few") == [1, 0]


def test_what_consumers_have_is_told_by_the_exit_code(told: Told) -> None:
    for _ in range(2):
        told.send("/queue/fixed", persistent="true")
    with told.client() as client:
        client.subscribe("/queue/fixed", consumer_window_size="0")
        client.message()
        done = told.command("queue", "move", "fixed", "picky")
        assert (done.returncode, "inDelivery" in done.stdout) == (1, True)
        assert counts(told, "picky") == [1]
