"""SENDs that ask for receipts are published together like those that do not, and each gets its own answer."""

from __future__ import annotations

from sys import maxsize
from unittest.mock import Mock

import pytest

from artemis_py.record_log import MemoryLog
from artemis_py.stomp.wire.parser import Parser
from tests.kit.broker_frames import feed_all, parser
from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire

LIMITED = """<address-settings><address-setting match="#"><max-size-messages>4</max-size-messages>
<address-full-policy>{policy}</address-full-policy></address-setting></address-settings>"""
NO_QUEUES = """<address-settings><address-setting match="#"><auto-create-queues>false</auto-create-queues>
<auto-create-addresses>false</auto-create-addresses></address-setting></address-settings>"""
CORES = {
    "unlimited": "",
    "drop": LIMITED.format(policy="DROP"),
    "fail": LIMITED.format(policy="FAIL"),
    "block": LIMITED.format(policy="BLOCK"),
    "nowhere": NO_QUEUES,
}
RECEIPTS = ["1", "", "a-b_c.d", "a b", " a", "x:y", "a\\cb", "a\\\\b", "\u00e4", "a\\nb", "~!"]


def frames(persistent: bool) -> list[bytes]:
    """Sends with and without receipts."""
    line = "persistent:true\n" if persistent else ""
    receipts = ["", "receipt:a\n", "receipt:b\n", "", "receipt:c\n", "receipt:d\n", "", "receipt:e\n"]
    return [
        f"SEND\ndestination:/queue/q\n{line}{receipt}\nm{number}\0".encode() for number, receipt in enumerate(receipts)
    ]


def outcome(core: str, version: str, writes: list[bytes]) -> object:
    """What the sender is told and what stands on the queue."""
    world = InProcessBroker(configuration(core))
    client = world.client("p")
    client.send(f"CONNECT\naccept-version:{version}\nhost:x\n\n\0".encode())
    client.collect().clear()
    for data in writes:
        if not client.is_closed:
            client.send(data)
    told = [frame.text for frame in client.collect()]
    queue = world.broker.queues.get("q")
    bodies = [] if queue is None else [entry.message.body for entry in queue.contents.order]
    return told, bodies, client.is_closed, client.connection.session.blocked_by is None, dict(world.stats.frames_in)


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_a_run_is_answered_like_its_frames_alone(core: str, version: str, persistent: bool) -> None:
    sends = frames(persistent)
    assert outcome(core, version, [b"".join(sends)]) == outcome(core, version, sends)


def test_persistent_sends_with_receipts_are_published_together() -> None:
    """One request to the log for a run, whatever is asked for: that is what makes it cheap."""

    class Counting(MemoryLog):
        published_run = Mock(return_value=None)

    log = Counting()
    world = InProcessBroker(configuration(), log=log)
    world.turns.units = maxsize
    client = world.client("p")
    client.send(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0" + b"".join(frames(persistent=True)))
    assert [len(call.args[0]) for call in log.published_run.call_args_list] == [8]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("receipt", RECEIPTS)
@pytest.mark.parametrize("place", range(3))
def test_a_block_reads_alike_when_all_but_its_receipt_is_known(version: str, receipt: str, place: int) -> None:
    lines = ["destination:/queue/q", "foo:bar"]

    def block(value: str) -> bytes:
        headers = [*lines[:place], f"receipt:{value}", *lines[place:]]
        return ("SEND\n" + "\n".join(headers) + "\n\nbody\0").encode()

    warm = parser(version)
    warmed = feed_all(warm, [block("a-1"), block("a-2"), block("a-3")])
    assert len(warmed) == 3
    assert warm.dialect.memo, "nothing was remembered: the test would compare the long way with itself"
    cold = feed_all(parser(version), [block(receipt)])
    assert feed_all(warm, [block(receipt)]) == cold, "what the connection sent last"
    assert feed_all(Parser(warm.dialect), [block(receipt)]) == cold, "what another connection of the acceptor sent"


@pytest.mark.parametrize(
    "lines", ["receipt:1\nreceipt:2\n", "receipt:1\nfoo:bar\nreceipt:2\n", "foo:a\nreceipt:1\n\r\n"]
)
def test_what_only_looks_alike_is_read_for_itself(lines: str) -> None:
    warm = parser()
    block = f"SEND\ndestination:/queue/q\n{lines}\nbody\0".encode()
    for _ in range(3):
        assert feed_all(warm, [block]) == feed_all(parser(), [block])


@pytest.mark.parametrize("limit", [{"maxHeaders": 2}, {"maxHeaderLineBytes": 40}, {"maxHeaderBytes": 45}])
def test_a_receipt_line_counts_against_the_limits(limit: dict[str, int]) -> None:
    """What is known without its receipt may be too large with one."""
    block = b"SEND\ndestination:/queue/q\nfoo:bar\n\n\0"
    short = b"SEND\ndestination:/queue/q\nreceipt:1\n\n\0"
    longer = b"SEND\ndestination:/queue/q\nreceipt:" + b"9" * 40 + b"\n\n\0"
    long = b"SEND\ndestination:/queue/q\nfoo:bar\nreceipt:" + b"9" * 40 + b"\n\n\0"
    warm, cold = parser("1.2", **limit), parser("1.2", **limit)
    feed_all(warm, [block] * 3)
    assert warm.dialect.memo
    feed_all(warm, [long])
    feed_all(cold, [long])
    assert cold.error is not None
    assert str(warm.error) == str(cold.error)
    warm, cold = parser("1.2", **limit), parser("1.2", **limit)
    assert feed_all(warm, [short, longer])[1:] == feed_all(cold, [longer])
    assert str(warm.error) == str(cold.error)
