"""The parser and large bodies: they go to an upload as they come, however the bytes are divided."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artemis_py.stomp.wire.dialect import Dialect
from artemis_py.stomp.wire.frames import LargeSend
from artemis_py.stomp.wire.parser import BodyRules, Parser
from artemis_py.storage.bodies import LargeStore
from artemis_py.storage.format.names import body_name
from tests.kit.broker_frames import acceptor
from tests.kit.committer import SteppedCommitter
from tests.kit.disk import SimDisk

LIMIT = 50
bodies = st.one_of(st.binary(max_size=10), st.binary(min_size=LIMIT - 2, max_size=LIMIT + 2), st.binary(max_size=300))
frames = st.tuples(bodies, st.booleans(), st.booleans())
"""A body, whether its length is told, and whether the frame is the same as others."""


class Reading:
    """A parser whose large bodies are on a disk in memory."""

    def __init__(self, **params: object) -> None:
        self.disk = SimDisk(random.Random(1))
        self._writer = SteppedCommitter(lambda: None)
        self._store = LargeStore(self.disk, self._writer, SteppedCommitter(lambda: None))
        dialect = Dialect("1.2", acceptor(stompMinLargeMessageSize=LIMIT, **params))
        self.parser = Parser(
            dialect, BodyRules(dialect.limits, lambda send: self._store.begin(durable=send.shape.persistent))
        )

    def feed(self, data: bytes) -> list[tuple[bool, bytes]]:
        """Of each SEND that is complete: whether its body is in a file, and the body."""
        found = []
        for frame, body in self.parser.feed(data):
            if isinstance(frame, LargeSend):
                while not frame.upload.may_go_on:
                    self._store.seal(0, 0)
                    self._writer.stop()
                    self._store.poll()
                number = frame.upload.body.number
                found.append((True, self.disk.read(body_name(number, durable=frame.shape.persistent))))
                assert len(frame.upload.body) == len(found[-1][1])
            else:
                found.append((False, body))
        return found


def frame_of(body: bytes, *, sized: bool, same: bool, number: int = 0) -> bytes:
    """A SEND."""
    lines = b"" if same else b"number:%d\n" % number
    if sized:
        lines += b"content-length:%d\n" % len(body)
    return b"SEND\ndestination:/queue/x\n" + lines + b"\n" + body + b"\0"


@settings(max_examples=max(settings().max_examples, 200))
@given(sends=st.lists(frames, min_size=1, max_size=6), cuts=st.lists(st.integers(1, 200), max_size=30))
def test_division_does_not_matter(sends: list[tuple[bytes, bool, bool]], cuts: list[int]) -> None:
    """Every body of at least the limit is in a file, and no other, and each is what was sent."""
    told = [(body if sized else body.replace(b"\0", b"."), sized, same) for body, sized, same in sends]
    stream = b"".join(
        frame_of(body, sized=sized, same=same, number=number) for number, (body, sized, same) in enumerate(told)
    )
    reading = Reading()
    found: list[tuple[bool, bytes]] = []
    for cut in cuts:
        found += reading.feed(stream[:cut])
        stream = stream[cut:]
    found += reading.feed(stream)
    assert found == [(len(body) >= LIMIT, body) for body, _, _ in told]


def test_a_large_send_is_never_quick() -> None:
    """It may not be published in a run with others: it has to wait."""
    one = Reading().parser
    frame, body = one.feed(frame_of(b"x" * LIMIT, sized=True, same=True))[0]
    assert isinstance(frame, LargeSend)
    assert (frame.quick, body) == (False, b"")


@pytest.mark.parametrize("sized", [True, False])
def test_it_knows_when_a_large_body_is_coming(sized: bool) -> None:
    one = Reading().parser
    data = frame_of(b"x" * 200, sized=sized, same=True)
    one.feed(data[:100])
    assert one.in_large_body
    one.feed(data[100:])
    assert not one.in_large_body


def test_what_comes_is_not_kept_in_memory() -> None:
    reading = Reading(maxBodyBytes=10**9)
    reading.feed(b"SEND\ndestination:/queue/x\n\n")
    for _ in range(3):
        reading.feed(b"x" * 1000)
        assert reading.parser.in_large_body
        assert reading.parser.waiting_bytes < 1000


@pytest.mark.parametrize("broken", [b"", b"SEND\ndestination:x\ncontent-length:1\n\nab\0", b"junk\0junk\n\n\0"])
def test_a_large_body_goes_to_a_file_whatever_comes_behind_it(broken: bytes) -> None:
    reading = Reading()
    body = b"x" * 2 * LIMIT
    assert reading.feed(b"SEND\ndestination:q\n\n" + body + b"\0" + broken) == [(True, body)]
    assert (reading.parser.error is not None) == bool(broken)
