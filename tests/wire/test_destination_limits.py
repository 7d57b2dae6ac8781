"""What a client sees at a limit on addresses, queues, connections and temporary destinations."""

from __future__ import annotations

import pytest

from tests.kit.in_process import InProcessBroker, configuration
from tests.kit.life import Life

pytestmark = pytest.mark.wire


SEND = "SEND\ndestination:/queue/{0}\nreceipt:{0}\n\nx\0"
SUBSCRIBE = "SUBSCRIBE\nid:{0}\ndestination:{1}\nreceipt:{0}\n\n\0"


def test_one_too_many_loses_nothing_else() -> None:
    """The frame is refused with the limit's name; what stands before and behind it is carried out."""
    world = InProcessBroker(configuration("<max-queues>2</max-queues>"))
    client = world.client("a").greet(version="1.1")
    sends = "".join(map(SEND.format, ("one", "two", "three", "one")))
    answers = client.says(sends + SUBSCRIBE.format(1, "/topic/t") + SEND.format("two"))
    assert [answer.command for answer in answers] == ["RECEIPT", "RECEIPT", "ERROR", "RECEIPT", "ERROR", "RECEIPT"]
    assert "max-queues" in str(answers[2].header("message"))
    assert answers[2].header("receipt-id") == "three"
    assert [world.broker.queues[name].message_count for name in ("one", "two")] == [2, 2]
    assert set(world.broker.addresses) == {"one", "two"}


def test_max_connections_of_a_user() -> None:
    core = """<resource-limit-settings><resource-limit-setting match="ann"><max-connections>1</max-connections>
    </resource-limit-setting></resource-limit-settings>"""
    world = InProcessBroker(configuration(core))
    connect = "CONNECT\naccept-version:1.1\nhost:x\nlogin:{}\n\n\0"
    first, second = world.client("a"), world.client("b")
    first.says(connect.format("ann"))
    (error,) = second.says(connect.format("ann"))
    assert error.command == "ERROR"
    assert "max-connections" in str(error.header("message"))
    assert second.is_closed
    (answer,) = world.client("c").says(connect.format("bob"))
    assert answer.command == "CONNECTED"
    first.drop()
    (answer,) = world.client("d").says(connect.format("ann"))
    assert answer.command == "CONNECTED"


def test_temporary_destinations_of_a_connection() -> None:
    """Those that it has can be used; each connection has its own."""
    world = InProcessBroker(configuration(acceptor="maxTemporaryDestinations=2"))
    client = world.client("a").greet(version="1.1")
    answers = client.says(
        SUBSCRIBE.format(1, "/temp-queue/one")
        + "SEND\ndestination:/queue/q\nreply-to:/temp-queue/two\nreceipt:r\n\nx\0"
        + SUBSCRIBE.format(3, "/temp-queue/three")
        + SUBSCRIBE.format(2, "/temp-queue/two")
        + "SEND\ndestination:/temp-topic/four\nreceipt:r\n\nx\0",
    )
    assert [answer.command for answer in answers] == ["RECEIPT", "RECEIPT", "ERROR", "RECEIPT", "ERROR"]
    assert "maxTemporaryDestinations" in str(answers[2].header("message"))
    (answer,) = world.client("b").greet(version="1.1").says(SUBSCRIBE.format(1, "/temp-queue/one"))
    assert answer.command == "RECEIPT"


LIMITS = """<max-addresses>3</max-addresses><max-queues>4</max-queues>
<resource-limit-settings><resource-limit-setting match="*"><max-queues>2</max-queues></resource-limit-setting>
</resource-limit-settings>"""


def test_what_is_there_after_a_restart_counts() -> None:
    """All of it comes back, whatever the limits say, and counts: for the broker, and for its user."""
    life = Life("", core=LIMITS)
    for name in ("one", "two"):
        life.send("x", to=f"/queue/{name}")
    life = life.again()
    broker = life.core
    assert set(broker.queues) == {"q", "one", "two"}
    assert broker.quota.queues_max == 4
    life.write("producer", "SEND", "destination:/queue/q::three", "receipt:1", body="x")
    error = life.error("producer")
    assert "clients without a login have 2 queues" in str(error.header("message"))
    life.send("x", to="/queue/four")
    error = life.error("producer")
    assert "there are 3 addresses" in str(error.header("message"))


@pytest.mark.parametrize(
    ("parameter", "frame"),
    [
        ("maxHeaderBytes=100", f"SEND\ndestination:/queue/q\nh:{'x' * 100}\n\n\0"),
        ("maxHeaderBytes=100", f"SEND\ndestination:/queue/q\nh:{'x' * 100}"),
        ("maxBodyBytes=10", "SEND\ndestination:/queue/q\n\n01234567890\0"),
        ("maxBodyBytes=10", "SEND\ndestination:/queue/q\n\n01234567890"),
    ],
)
def test_a_limit_of_the_acceptor_says_its_name(parameter: str, frame: str) -> None:
    client = InProcessBroker(configuration("", parameter)).client("a").greet(version="1.1")
    (error,) = client.says(frame)
    name, _, limit = parameter.partition("=")
    assert f"more than {limit} bytes ({name} of the acceptor)" in str(error.header("message"))


def test_a_full_acceptor_says_what_to_do() -> None:
    world = InProcessBroker(configuration("", "connectionsAllowed=1"))
    world.client("a").greet()
    (error,) = world.client("b").heard()
    message = str(error.header("message"))
    assert message.startswith("This acceptor allows 1 connection")
    assert "raise its connectionsAllowed" in message


def test_a_client_that_says_nothing_is_told_the_limit() -> None:
    world = InProcessBroker(configuration("", "handshakeTimeout=3000"))
    client = world.client("a")
    world.advance(3001)
    (error,) = client.heard()
    assert "within 3000 ms (handshakeTimeout of the acceptor)" in str(error.header("message"))
