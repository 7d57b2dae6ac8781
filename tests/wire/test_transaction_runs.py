"""SENDs in a transaction that stand behind each other are kept together, and end where one is different."""

from __future__ import annotations

import pytest

from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire


def send(body: str, transaction: str = "t", to: str = "q", *headers: str) -> str:
    lines = "".join(f"{header}\n" for header in headers)
    return f"SEND\ndestination:/queue/{to}\ntransaction:{transaction}\n{lines}\n{body}\0"


BEGIN = "BEGIN\ntransaction:t\n\n\0"
COMMIT = "COMMIT\ntransaction:t\nreceipt:t\n\n\0"


def bodies(world: InProcessBroker, queue: str = "q") -> list[str]:
    """What is on a queue."""
    return [bytes(entry.message.body).decode() for entry in world.queue(queue).contents.order]  # type: ignore[arg-type]


def test_runs_of_different_destinations_transactions_and_headers_keep_their_order() -> None:
    world = InProcessBroker(configuration())
    frames = [
        BEGIN, BEGIN.replace(":t", ":u"), send("1"), send("2"), send("3", "u"), send("4", to="r"), send("5"),
        send("6", "t", "q", "priority:9"), send("7", "t", "q", "a:b"), send("8"),
    ]  # fmt: skip
    frames += [send("9", "t", "q", "receipt:nine"), send("10"), COMMIT, COMMIT.replace(":t", ":u")]
    answers = world.client("a").greet().says("".join(frames))
    assert [answer.header("receipt-id") for answer in answers] == ["nine", "t", "u"]
    assert bodies(world) == ["6", "1", "2", "5", "7", "8", "9", "10", "3"]
    assert bodies(world, "r") == ["4"]


def test_a_run_ends_at_the_limit_of_the_transaction() -> None:
    """With one ERROR, as long runs and short ones do; a 1.1 connection goes on, and what was kept is committed."""
    world = InProcessBroker(configuration())
    client = world.client("a").greet(version="1.1")
    service = client.connection.session.service
    one_bytes = 1000 + len("destination:/queue/q\npriority:4\npersistent:false\n\n")
    service.limits = type(service.limits)(transaction_bytes_max=3 * (one_bytes + 400))
    sent = [str(number) * 1000 for number in range(5)]
    answers = client.says(BEGIN + "".join(map(send, sent)))
    errors = [answer for answer in answers if answer.command == "ERROR"]
    assert errors
    assert all("Open transactions hold" in str(answer.header("message")) for answer in errors)
    kept = len(sent) - len(errors)
    assert client.says(COMMIT)[0].command == "RECEIPT"
    assert bodies(world) == sent[:kept]
    assert 0 < kept < 5


def test_a_run_in_no_transaction() -> None:
    world = InProcessBroker(configuration())
    answers = world.client("a").greet(version="1.1").says(send("1") + send("2") + BEGIN + send("3") + COMMIT)
    assert [answer.command for answer in answers] == ["ERROR", "ERROR", "RECEIPT"]
    assert bodies(world) == ["3"]


def test_a_run_to_an_address_that_goes_before_the_commit() -> None:
    """It is made again, or found again, when the messages are published."""
    world = InProcessBroker(configuration())
    client = world.client("a").greet()
    client.says(BEGIN + send("1") + send("2"))
    world.broker.addresses["q"].losses += 1
    client.says(send("3") + COMMIT)
    assert bodies(world) == ["1", "2", "3"]


AUTO_CREATE_OFF = """<address-settings><address-setting match="t"><auto-create-addresses>false</auto-create-addresses>
</address-setting></address-settings><addresses><address name="t"><multicast/></address></addresses>"""


def test_a_send_is_kept_after_one_that_was_refused_while_its_selectors_were_evaluated() -> None:
    """Of the one that was refused nothing is kept in the place of the other."""
    world = InProcessBroker(configuration(AUTO_CREATE_OFF))
    for number in range(3):
        reader = world.client(f"reader {number}").greet()
        reader.send(b"SUBSCRIBE\nid:1\ndestination:/topic/t\nselector:x LIKE '%%%d%%'\n\n\0" % number)
    sender = world.client("sender").greet(version="1.1")
    session, budget = sender.connection.session, world.broker.budget
    budget.refill(1)
    session.receive(b"SEND\ndestination:/topic/t\nx:y\n\nrefused\0", world.now_ms)
    assert session.has_more, "the SEND must wait for its selectors"
    for number in range(3):
        world.client(f"reader {number}").drop()
    world.broker.registry.delete_address(world.broker.addresses["t"])
    budget.refill(10**6)
    frames = [BEGIN, send("kept", "t", "q", "receipt:1"), COMMIT]
    session.receive("".join(frames).encode(), world.now_ms)
    world.turns.output.mark_dirty(sender.connection)
    world.turns.schedule()
    world.settle()
    assert [frame.command for frame in sender.collect()] == ["ERROR", "RECEIPT", "RECEIPT"]
    assert [entry.message.body for entry in world.queue("q").contents.order] == [b"kept"]
