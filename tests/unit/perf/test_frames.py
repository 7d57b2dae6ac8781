from __future__ import annotations

import pytest

from artemis_py.perf.link import Target
from artemis_py.perf.pump import blocks, body_of, marker_of, numbered, send_frame, unique_frame
from artemis_py.stomp.client import FrameReader, ServerFrame, frame

TARGET = Target("127.0.0.1", 1, send_headers=(("priority", "4"),))


def frames(stream: bytes) -> list[ServerFrame]:
    reader = FrameReader()
    reader.feed(stream)
    return list(reader.frames())


def send(place: int) -> bytes:
    return send_frame(TARGET, "/queue/a", numbered(body_of(100), place))


def test_a_send_has_its_headers_and_body() -> None:
    assert (
        send_frame(TARGET, "/queue/a", b"xyz") == b"SEND\ndestination:/queue/a\ncontent-length:3\npriority:4\n\nxyz\0"
    )


@pytest.mark.parametrize("total", [0, 1, 6, 7, 8, 700, 701])
def test_blocks_hold_exactly_the_total(total: int) -> None:
    length = len(send_frame(TARGET, "/queue/a", body_of(100)))
    found = list(blocks(send, total, block_bytes=7 * length))
    assert sum(len(block) for block in found) == length * total
    assert all(len(block) <= 7 * length for block in found)
    bodies = [one.body for one in frames(b"".join(found))]
    assert len(bodies) == len(set(bodies)) == total
    assert {body[15:] for body in bodies} <= {body_of(100)[15:]}


@pytest.mark.parametrize("total", [0, 1, 6, 7, 8, 100])
def test_unique_blocks_never_repeat_a_header(total: int) -> None:
    found = blocks(lambda place: unique_frame(TARGET, "/queue/a", body_of(50), place), total, block_bytes=1000)
    assert len({one.headers["correlation-id"] for one in frames(b"".join(found))}) == total


def test_blocks_of_a_byte_are_frames_one_by_one() -> None:
    found = [frames(bytes(view)) for view in blocks(send, 3, block_bytes=1)]
    assert [one.body[:15] for [one] in found] == [b"00000000-000000", b"00000001-000000", b"00000002-000000"]


@pytest.mark.parametrize("size", [1, 35, 36, 37, 100, 1024])
def test_bodies_have_their_size_and_end_in_their_marker(size: int) -> None:
    body = body_of(size)
    assert len(body) == size
    assert not set(body) & set(b"\0\r\n")
    assert frame("SEND", (), body).endswith(marker_of(body))
    assert len(numbered(body, 7)) == size
    assert frame("SEND", (), numbered(body, 7)).endswith(marker_of(body))


def test_a_body_without_room_for_a_number_has_none() -> None:
    assert numbered(body_of(15), 7) == body_of(15)
    assert numbered(body_of(16), 7) == b"########-000007" + body_of(16)[15:]
