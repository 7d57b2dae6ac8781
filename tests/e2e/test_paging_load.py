"""Much more than fits: the broker's memory stays flat and its turns short, whoever reads and however slowly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.client import READ_BYTES, StompSocket, connected, frame
from tests.kit.meanwhile import meanwhile
from tests.kit.process import LONG, WAIT_S, BrokerProcess, configuration, running

pytestmark = pytest.mark.e2e

BODY_BYTES = 1024
BLOCK = 100
TURN_S_MAX_ALONE = 0.1
"""In the soak, on a machine that does nothing else."""
TURN_SHARE_MAX = 0.2
"""Of the time of all turns, beside other tests, whose work counts into a turn's time."""
WAITED_SHARE_MAX = 0.1
"""A broker that waits more for a processor is not alone."""
MIB = 1 << 20
READ = {"id": "1", "ack": "auto"}
"""No receipt is asked for, because messages may come before it."""


def judge(broker: BrokerProcess, seen_bytes: list[int], memory_bytes_max: int, turn_s_max: float | None) -> None:
    """The memory was never more than this, and no turn was too long: than this, or than its share."""
    assert max(seen_bytes) < memory_bytes_max, f"{max(seen_bytes) / MIB:.0f} MiB"
    turn_s = broker.metric("artemis_turn_duration_seconds_max")
    ran_ns, waited_ns, _ = Path(f"/proc/{broker.process.pid}/schedstat").read_text("ascii").split()
    waited = int(waited_ns) / (int(ran_ns) + int(waited_ns))  # it could have run, and others did, as Linux counts
    told = f"a turn of {turn_s * 1000:.0f} ms; the broker waited {waited:.0%} of its time for a processor"
    if turn_s_max is None:
        assert broker.longest_turn_share < TURN_SHARE_MAX, told
    elif waited > WAITED_SHARE_MAX:
        print(f"not judged: {told}")
    else:
        assert turn_s < turn_s_max, told


@contextmanager
def watched(
    folder: Path, *, durable: bool = False, memory: str = "4M", page_size: str = "1M", queues: int = 1
) -> Iterator[tuple[BrokerProcess, list[int]]]:
    """A broker whose addresses page what is above ``memory``, and how much of the machine's it had, again and again."""
    names = "".join(f'<queue name="fan.{number}"/>' for number in range(queues))
    text = configuration(
        folder=folder,
        persists=durable,
        core="<max-disk-usage>100</max-disk-usage>",
        addresses=f'<address name="fan"><multicast>{names}</multicast></address>',
        settings=f"""<address-setting match="#"><max-size-bytes>{memory}</max-size-bytes>
        <page-size-bytes>{page_size}</page-size-bytes></address-setting>""",
    )
    with running(text, folder) as broker:
        seen_bytes: list[int] = []
        with meanwhile(lambda: seen_bytes.append(broker.memory_bytes), pause_s=0.002):
            yield broker, seen_bytes


def fill(broker: BrokerProcess, destination: str, count: int, **headers: object) -> None:
    """Send so many messages of 1 KiB; the last one's receipt vouches for all."""
    block = frame("SEND", {"destination": destination, **headers}, b"x" * BODY_BYTES) * BLOCK
    with connected(broker.port) as client:
        for _ in range(count // BLOCK):
            client.raw(block)
        client.ask("SEND", {"destination": destination, **headers}, b"last")


def drain(client: StompSocket, count: int) -> None:
    """Read so many messages, counting nothing but the bytes that end frames."""
    client.socket.settimeout(WAIT_S)
    while count > 0:
        data = client.socket.recv(READ_BYTES)
        assert data, "the broker closed the connection"
        count -= data.count(0)


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(
    ("count", "memory", "memory_bytes_max", "turn_s_max"),
    [(60_000, "4M", 110 * MIB, None), pytest.param(10_000_000, "20M", 200 * MIB, TURN_S_MAX_ALONE, marks=LONG)],
)
def test_memory_is_flat_and_turns_are_short(
    tmp_path: Path, durable: bool, count: int, memory: str, memory_bytes_max: int, turn_s_max: float | None
) -> None:
    """So many messages go in, and then out."""
    with watched(tmp_path, durable=durable, memory=memory, page_size="10M") as (broker, seen_bytes):
        fill(broker, "/queue/q", count, persistent=str(durable).lower())
        assert broker.metric("artemis_number_of_pages", address="q") > 1
        with connected(broker.port) as client:
            client.send("SUBSCRIBE", {**READ, "destination": "/queue/q"})
            drain(client, count + 1)
        broker.await_count("q", 0)
        broker.await_metric(0, "artemis_number_of_pages", address="q")
        judge(broker, seen_bytes, memory_bytes_max, turn_s_max)


@pytest.mark.parametrize(("queues", "turn_s_max"), [(20, None), pytest.param(50, TURN_S_MAX_ALONE, marks=LONG)])
def test_many_queues_of_which_one_is_slow(tmp_path: Path, queues: int, turn_s_max: float | None) -> None:
    """One consumer that reads nothing costs pages, not memory, and nobody else's time."""
    count = 2_000
    with (
        watched(tmp_path, memory="1M", page_size="256K", queues=queues) as (broker, seen_bytes),
        connected(broker.port) as c,
    ):
        for number in range(1, queues):
            c.send("SUBSCRIBE", {**READ, "destination": f"fan::fan.{number}", "id": str(number)})
        with connected(broker.port) as slow:
            slow.subscribe("fan::fan.0", id="slow", consumer_window_size=2000)
            fill(broker, "/topic/fan", count)
            drain(c, (count + 1) * (queues - 1))
        broker.await_count("fan.0", count + 1)
        assert broker.metric("artemis_number_of_pages", address="fan") > 1
        broker.await_metric(count + 1, "artemis_message_count", address="fan")
        judge(broker, seen_bytes, 130 * MIB, turn_s_max)
        c.send("SUBSCRIBE", {**READ, "destination": "fan::fan.0", "id": "0"})
        drain(c, count + 1)
        broker.await_metric(0, "artemis_number_of_pages", address="fan")


@pytest.mark.parametrize("consumers", [100])
def test_many_selective_consumers_on_one_queue(tmp_path: Path, consumers: int) -> None:
    """Each finds its few among all the others', which nobody keeps in memory for it."""
    count = 2_000
    with watched(tmp_path, memory="1M", page_size="512K") as (broker, seen_bytes), connected(broker.port) as client:
        blocks = [frame("SEND", {"destination": "/queue/q", "key": key}, b"x" * 500) for key in range(consumers)]
        for _ in range(count // consumers):
            client.raw(b"".join(blocks))
        broker.await_count("q", count)
        for key in range(consumers):
            client.send("SUBSCRIBE", {**READ, "destination": "/queue/q", "id": key, "selector": f"key = '{key}'"})
        drain(client, count)
        broker.await_count("q", 0)
        judge(broker, seen_bytes, 130 * MIB, None)


@pytest.mark.parametrize(("count", "turn_s_max"), [(20_000, None), pytest.param(300_000, TURN_S_MAX_ALONE, marks=LONG)])
def test_a_browser_of_a_long_queue(tmp_path: Path, count: int, turn_s_max: float | None) -> None:
    """Somebody looks at so many messages in small pages; nobody takes any."""
    with watched(tmp_path, memory="1M", page_size="64K") as (broker, seen_bytes), connected(broker.port) as client:
        fill(broker, "/queue/q", count)
        client.send("SUBSCRIBE", {**READ, "destination": "/queue/q", "browser": "true"})
        drain(client, count + 1)
        broker.await_count("q", count + 1)
        judge(broker, seen_bytes, 110 * MIB, turn_s_max)
