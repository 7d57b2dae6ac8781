"""A queue that is filled from the log, on real disks: SIGKILL again and again meanwhile, and large bodies that only
readers of the log still had.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.client import StompSocket, connected, frame
from tests.kit.process import BrokerProcess, configuration, retained

pytestmark = pytest.mark.e2e

COUNT = 600
PADDING = b" " + b"x" * 4000
"""All messages together are more than a queue has in memory on a full address."""
KILLS = 3
TAKEN = 60
"""How many messages are acknowledged in each life."""
DESK = '<address name="orders"><anycast><queue name="desk"/></anycast></address>'
VIEW = '<address name="audit"><anycast><queue name="audit" underlying-address="orders"/></anycast></address>'
SETTINGS = """<address-setting match="#"><max-size-messages>50</max-size-messages>
<page-size-bytes>100K</page-size-bytes></address-setting>"""


class Place:
    """A folder, and the brokers that run in it one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def broker(self, *addresses: str) -> BrokerProcess:
        """The next one, ready."""
        core = f"<journal-file-size>64K</journal-file-size>{retained(self._folder)}"
        text = configuration(folder=self._folder, core=core, addresses="".join(addresses), settings=SETTINGS)
        file = self._folder / "broker.xml"
        file.write_text(text, "utf-8")
        broker = BrokerProcess(["run", str(file)], self._folder / "broker.log")
        broker.await_ready()
        return broker


def publish(client: StompSocket, numbers: range) -> None:
    """Messages, the last one with a receipt."""
    client.raw(b"".join(
        frame(
            "SEND",
            {"destination": "orders", "persistent": "true", **({"receipt": "r"} if one == numbers[-1] else {})},
            b"%d" % one + PADDING,
        )
        for one in numbers
    ))  # fmt: skip
    assert client.receive().command == "RECEIPT"


def take(client: StompSocket, destination: str, count: int) -> list[int]:
    """Messages in order, each acknowledged; the last acknowledgement is confirmed."""
    client.subscribe(destination, consumer_window_size="0")
    found: list[int] = []
    while len(found) < count:
        message = client.message()
        found.append(int(message.body.split()[0]))
        client.acknowledge(message)
    return found


def test_A_61_a_queue_is_filled_once_whenever_the_broker_is_killed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    broker = place.broker(DESK)
    try:
        with connected(broker.port) as client:
            publish(client, range(COUNT))
            assert take(client, "orders::desk", 50) == list(range(50))
        broker.kill()
        found: list[int] = []
        sent = COUNT
        for _ in range(KILLS):
            broker = place.broker(DESK, VIEW)
            with connected(broker.port) as client, connected(broker.port) as sender:
                found += take(client, "audit::audit", TAKEN)
                publish(sender, range(sent, sent + 20))
                sent += 20
                count = broker.metric("artemis_message_count", queue="audit")
            assert len(found) + count < sent, "it is still being filled"
            broker.kill()
        broker = place.broker(DESK, VIEW)
        with connected(broker.port) as client:
            found += take(client, "audit::audit", sent - len(found))
            broker.await_count("audit", 0)
        assert found == list(range(sent))
    finally:
        broker.kill()


def test_A_61_large_bodies_that_only_readers_of_the_log_had(tmp_path: Path) -> None:
    """They stay where the log keeps them, as long as a queue needs them; also after a restart."""
    place, body = Place(tmp_path), b"x" * 300_000
    broker = place.broker(DESK)
    try:
        with connected(broker.port) as client:
            head = {"destination": "orders", "persistent": "true", "receipt": "r"}
            client.raw(frame("SEND", head, body))
            assert client.receive().command == "RECEIPT"
            client.subscribe("orders::desk")
            client.acknowledge(client.message())
        broker.eventually("retired", lambda: len(list((tmp_path / "kept" / "large").glob("*.body"))), lambda n: n == 1)
        assert broker.stop() == 0
        for _ in range(2):
            broker = place.broker(DESK, VIEW)
            broker.await_count("audit", 1)
            broker.kill()
        broker = place.broker(DESK, VIEW)
        with connected(broker.port) as client:
            client.subscribe("audit::audit")
            assert client.message().body == body
    finally:
        broker.kill()
