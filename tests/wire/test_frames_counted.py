"""Frames are counted once, however often they have to be tried."""

from __future__ import annotations

import pytest

from tests.kit.in_process import InProcessBroker, configuration

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
    assert sender.connection.session.blocked_by is not None
    reader.send(b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:auto\n\n\0")
    world.advance(1)
    world.advance(1)
    assert sender.connection.session.blocked_by is None
    came = {name: count - before.get(name, 0) for name, count in world.stats.frames_in.items()}
    sent = [frame.split(b"\n", 1)[0].decode() for frame in frames]
    assert {name: count for name, count in came.items() if count} == {
        "SUBSCRIBE": 1, **{name: sent.count(name) for name in sent},
    }  # fmt: skip


@pytest.mark.parametrize("ack", ["auto", "client"])
def test_each_message_that_goes_out_counts(ack: str) -> None:
    world = InProcessBroker(configuration())
    sender, reader = world.client("sender"), world.client("reader")
    for client in (sender, reader):
        client.send(CONNECT)
    reader.send(f"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:{ack}\n\n\0".encode())
    sender.send(SEND * 3)
    commands = [frame.command for client in (sender, reader) for frame in client.collect()]
    assert commands.count("MESSAGE") == commands.count("RECEIPT") == 3
    assert world.stats.frames_out == {name: commands.count(name) for name in set(commands)}


def test_of_acknowledgements_in_a_row_those_up_to_the_refused_one_count() -> None:
    world = InProcessBroker(configuration())
    client = world.client("reader")
    client.send(CONNECT + b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual\n\n\0" + SEND * 3)
    ids = [frame.header("ack") for frame in client.collect() if frame.command == "MESSAGE"]
    assert len(ids) == 3
    client.send("".join(f"ACK\nid:{id}\n\n\0" for id in (ids[0], ids[1], ids[1], ids[2])).encode())
    assert client.is_closed
    assert world.stats.frames_in["ACK"] == 3
