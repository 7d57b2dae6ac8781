"""ACKs one behind the other are read and settled together, and nobody can tell by what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import pytest

from artemis_py.core.queue.queue import Queue
from artemis_py.stomp.wire.frames import ACK_RECEIPT_BYTES_MAX, Limits
from tests.kit.in_process import InProcessBroker, configuration

pytestmark = pytest.mark.wire

MODES = {"a": "client", "b": "client-individual", "c": "auto"}
RUNS = {
    "in order": "b1 b2 b3",
    "backwards": "b3 b2 b1",
    "cumulative": "a2 a4",
    "two subscriptions": "b1 a2 b2 b3 a3",
    "twice": "b1 b2 b1 b3",
    "covered already": "a3 a1 a4",
    "of ack:auto": "b2 c1 b3",
    "never delivered": "b1 b999999 b2",
    "another consumer": "b1 x1 b2",
    "more digits than any number": f"b1 b{'9' * 19} b2",
    "bad at once": "b999999 b1",
    "bad at the end": "a1 b1 b9",
}


RECEIPTS: dict[str, Callable[[int], tuple[str, str]]] = {
    "no receipts": lambda number: ("", ""),
    "receipts behind": lambda number: ("", f"receipt:r-{number}\n"),
    "receipts before": lambda number: (f"receipt:r {number}\n" if number == 2 else f"receipt:{number}\n", ""),
    "some receipts": lambda number: ("", f"receipt:{number}\n" if number % 2 else ""),
    "two receipts": lambda number: (f"receipt:a{number}\n", f"receipt:b{number}\n"),
    "long receipts": lambda number: ("", f"receipt:{'x' * 63}{number}\n"),
}


class Reader:
    """A world in which one client has been sent five messages on each of three subscriptions."""

    def __init__(self) -> None:
        self.world = InProcessBroker(configuration())
        self.client = self.world.client("c").greet()
        for name, mode in MODES.items():
            self.client.frame("SUBSCRIBE", f"id:{name}", f"destination:/queue/{name}", f"ack:{mode}")
            for number in range(5):
                self.client.frame("SEND", f"destination:/queue/{name}", body=f"{number}")
        self.ids: dict[str, str] = {}
        for frame in self.client.heard():
            ack = frame.header("ack") or frame.header("message-id") or ""
            self.ids[f"{frame.header('subscription')}{int(frame.body) + 1}"] = ack
        assert len(self.ids) == 15

    def acks(self, run: str, extra: str, receipts: str = "no receipts") -> list[bytes]:
        """ACKs of these messages; of one that never was, with a made-up id."""
        acks = []
        for number, name in enumerate(run.split()):
            made_up = "999-1" if name.startswith("x") else f"{self.ids[name[0] + '1'].partition('-')[0]}-{name[1:]}"
            before, behind = RECEIPTS[receipts](number)
            acks.append(f"ACK\n{before}id:{self.ids.get(name, made_up)}\n{behind}{extra}\n\0".encode())
        return acks

    def outcome(self) -> object:
        """Everything that the ACKs may have changed."""
        queues = {name: self.world.queue(name) for name in MODES}
        counts = {
            name: (
                queue.message_count,
                queue.contents.delivering_count,
                queue.contents.counters.acknowledged,
                queue.contents.counters.held_size_bytes,
            )
            for name, queue in queues.items()
        }
        frames = [frame.text for frame in self.client.collect()]
        return counts, frames, self.client.is_closed, dict(self.world.stats.frames_in)


@pytest.mark.parametrize("receipts", RECEIPTS)
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_run_does_what_its_acks_do_alone(run: str, receipts: str) -> None:
    """A header that means nothing sends an ACK the long way."""
    alone = Reader()
    for data in alone.acks(run, "foo:bar\n", receipts):
        if not alone.client.is_closed:
            alone.client.send(data)
    outcome = alone.outcome()
    for between in (b"", b"\n", b"\r\n"):
        together = Reader()
        together.client.send(between.join(together.acks(run, "", receipts)))
        assert together.outcome() == outcome, between


@pytest.mark.interpreted
@pytest.mark.parametrize("receipts", ["no receipts", "receipts behind", "some receipts"])
def test_a_run_is_settled_together(receipts: str) -> None:
    """One request to the queue, whatever the number of ACKs: that is what makes it cheap."""
    reader = Reader()
    with patch.object(Queue, "acknowledge", autospec=True, side_effect=Queue.acknowledge) as asked:
        reader.client.send(b"".join(reader.acks("b1 b2 b3 b5", "", receipts)))
    assert [len(call.args[2]) for call in asked.call_args_list] == [4]


def test_only_limits_that_every_ack_keeps_allow_the_short_way() -> None:
    longest = len(f"ACK\nid:{'9' * 18}-{'9' * 18}\nreceipt:{'r' * ACK_RECEIPT_BYTES_MAX}")
    assert Limits(header_line_bytes_max=longest, header_bytes_max=longest, headers_max=2).allow_any_ack
    assert not Limits(header_line_bytes_max=longest - 1).allow_any_ack
    assert not Limits(header_bytes_max=longest - 1).allow_any_ack
    assert not Limits(headers_max=1).allow_any_ack
