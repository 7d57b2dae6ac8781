"""Frames are counted once, however often they have to be tried."""

from __future__ import annotations

import pytest

from tests.wire.in_process import Client, InProcessBroker, configuration

pytestmark = pytest.mark.wire

FULL = """<address-settings><address-setting match="#"><max-size-messages>1</max-size-messages>
<address-full-policy>BLOCK</address-full-policy></address-setting></address-settings>"""
CONNECT = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0"
SEND = b"SEND\ndestination:/queue/q\nreceipt:r\n\nm\0"
SENDS = {
    "alone": [SEND],
    "with an expiry": [SEND.replace(b"receipt:r", b"receipt:r\nexpires:32503680000000")],
    "in a transaction": [
        b"BEGIN\ntransaction:t\n\n\0",
        SEND.replace(b"receipt:r", b"transaction:t"),
        b"COMMIT\ntransaction:t\nreceipt:c\n\n\0",
    ],
}


def is_blocked(client: Client) -> bool:
    return client.connection.session.blocked_by is not None


@pytest.mark.parametrize("frames", SENDS.values(), ids=SENDS)
def test_a_frame_that_had_to_wait_counts_once(frames: list[bytes]) -> None:
    world = InProcessBroker(configuration(FULL))
    sender, reader = world.client("sender"), world.client("reader")
    for client in (sender, reader):
        client.send(CONNECT)
    sender.send(SEND)
    before = dict(world.stats.frames_in)
    for frame in frames:
        sender.send(frame)
    assert is_blocked(sender)
    reader.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:auto\n\n\0")
    world.advance(1)
    world.advance(1)
    assert not is_blocked(sender)
    came = {name: count - before.get(name, 0) for name, count in world.stats.frames_in.items()}
    sent = [frame.split(b"\n", 1)[0].decode() for frame in frames]
    assert {name: count for name, count in came.items() if count} == {
        "SUBSCRIBE": 1, **{name: sent.count(name) for name in sent},
    }  # fmt: skip
