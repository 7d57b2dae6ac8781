from __future__ import annotations

import pytest

from artemis_py.perf.frames import blocks, body_of, marker_of, send_frame, single_frames, unique_blocks
from artemis_py.perf.target import Target
from artemis_py.stomp.client import FrameReader, frame

TARGET = Target("127.0.0.1", 1, send_headers=(("priority", "4"),))


def parse(stream: bytes) -> list[dict[str, str]]:
    reader = FrameReader()
    reader.feed(stream)
    return [one.headers for one in reader.frames()]


def test_a_send_has_its_headers_and_body() -> None:
    assert (
        send_frame(TARGET, "/queue/a", b"xyz") == b"SEND\ndestination:/queue/a\ncontent-length:3\npriority:4\n\nxyz\0"
    )


@pytest.mark.parametrize("total", [0, 1, 6, 7, 8, 700, 701])
def test_blocks_hold_exactly_the_total(total: int) -> None:
    rendered = send_frame(TARGET, "/queue/a", body_of(100))
    found = list(blocks(rendered, total, block_bytes=7 * len(rendered)))
    assert b"".join(found) == rendered * total
    assert all(len(block) <= 7 * len(rendered) for block in found)


@pytest.mark.parametrize("total", [0, 1, 6, 7, 8, 100])
def test_unique_blocks_never_repeat_a_header(total: int) -> None:
    found = parse(b"".join(unique_blocks(TARGET, "/queue/a", body_of(50), total, block_bytes=1000)))
    assert len(found) == total
    assert len({headers["correlation-id"] for headers in found}) == total


def test_single_frames_are_one_by_one() -> None:
    assert [bytes(view) for view in single_frames(b"ab\0", 3)] == [b"ab\0"] * 3


@pytest.mark.parametrize("size", [1, 35, 36, 37, 100, 1024])
def test_bodies_have_their_size_and_end_in_their_marker(size: int) -> None:
    body = body_of(size)
    assert len(body) == size
    assert not set(body) & set(b"\0\r\n")
    assert frame("SEND", (), body).endswith(marker_of(body))
