"""How fast parts of files leave, and for whom they wait: the sender's own thread on real sockets."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from artemis_py.server.http.file_sender import CHUNK_BYTES, FileSender
from artemis_py.server.http.requests import FileBody, HttpLimits
from artemis_py.server.http.response_writer import is_near
from artemis_py.server.server import BUSY_SHARE, WINDOW_NS, Load
from artemis_py.server.stats import ServerStats
from tests.kit.process import eventually, open_below

WAIT_S = 120.0
PIECES = 4
SLOW = HttpLimits(near_bytes_per_second_max=8 * CHUNK_BYTES)
NEVER = HttpLimits(near_bytes_per_second_max=1)


class Reader:
    """Takes everything that a sender sends it; ``ended`` has how and when its transfer was done."""

    def __init__(self, sender: FileSender, path: Path, *, near: bool) -> None:
        self.ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        self.ended: queue.Queue[tuple[OSError | None, float]] = queue.Queue()
        received = iter(lambda: self.ours.recv(CHUNK_BYTES), b"")
        self._taker = threading.Thread(target=deque[bytes](maxlen=0).extend, args=(received,), daemon=True)
        self._taker.start()
        body = FileBody(os.open(path, os.O_RDONLY), 0, path.stat().st_size)
        self.transfer = sender.send(
            self._theirs.fileno(), body, near, lambda failure: self.ended.put((failure, time.monotonic()))
        )

    def close(self) -> None:
        """Both ends. The first tells the thread to end, which must not read from a closed socket."""
        self._theirs.close()
        self._taker.join(WAIT_S)
        self.ours.close()


@contextmanager
def sending(limits: HttpLimits, is_busy: Callable[[], bool], path: Path) -> Iterator[Callable[[bool], Reader]]:
    """Makes readers, near ones or far ones, of a file of four pieces."""
    path.write_bytes(bytes(PIECES * CHUNK_BYTES))
    sender = FileSender(lambda call: call(), limits, is_busy)
    with ExitStack() as readers:
        try:
            yield lambda near: readers.enter_context(closing(Reader(sender, path, near=near)))
        finally:
            sender.stop()


def test_near_readers_share_what_a_busy_broker_leaves_them(tmp_path: Path) -> None:
    with sending(SLOW, lambda: True, tmp_path / "file") as make:
        began_s = time.monotonic()
        readers = [make(True) for _ in range(2)]
        failures, ended_s = zip(*[reader.ended.get(timeout=WAIT_S) for reader in readers], strict=True)
        assert failures == (None, None)
        assert max(ended_s) - began_s >= (2 * PIECES - 1) / 8


def test_far_readers_do_not_wait_with_near_ones(tmp_path: Path) -> None:
    with sending(NEVER, lambda: True, tmp_path / "file") as make:
        near = make(True)
        for _ in range(2):
            assert make(False).ended.get(timeout=WAIT_S)[0] is None
        assert near.ended.empty()


def test_nobody_waits_for_a_broker_that_is_not_busy(tmp_path: Path) -> None:
    with sending(NEVER, lambda: False, tmp_path / "file") as make:
        assert make(True).ended.get(timeout=WAIT_S)[0] is None


def test_a_transfer_that_waits_can_be_given_up(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(PIECES * CHUNK_BYTES))
    sender = FileSender(lambda call: call(), NEVER, lambda: True)
    readers = [Reader(sender, path, near=True) for _ in range(2)]
    eventually("paused", lambda: len(sender._paused), lambda count: count == 2)
    sender.cancel(readers[0].transfer)
    eventually("the other alone", lambda: set(sender._paused), lambda paused: paused == {readers[1].transfer})
    sender.stop()
    for reader in readers:
        assert reader.ended.empty()
        reader.close()
    assert open_below(tmp_path) == set()


@pytest.mark.parametrize(
    ("peer", "own", "near"),
    [
        (("127.0.0.1", 5), ("127.0.0.1", 6), True),
        (("127.0.0.1", 5), ("127.0.0.2", 6), True),
        (("::1", 5, 0, 0), ("::1", 6, 0, 0), True),
        (("192.0.2.7", 5), ("192.0.2.7", 6), True),
        (("192.0.2.8", 5), ("192.0.2.7", 6), False),
        (("fe80::1%eth0", 5, 0, 2), ("fe80::2%eth0", 6, 0, 2), False),
        (None, ("192.0.2.7", 6), False),
    ],
)
def test_who_reads_on_the_same_machine(peer: object, own: object, near: bool) -> None:
    assert is_near(peer, own) is near


def test_a_broker_is_busy_while_turns_take_most_of_the_time() -> None:
    now_ns = [0]
    stats = ServerStats()
    load = Load(stats, lambda: now_ns[0])
    assert not load.is_busy()
    for share, windows, is_busy, why in (
        (BUSY_SHARE + 0.01, 1, True, ""),
        (0, 0.5, True, "too early to tell"),
        (1, 0.5, False, "half of the window"),
        (BUSY_SHARE - 0.01, 20, False, ""),
        (1, 1, True, ""),
    ):
        now_ns[0] += int(windows * WINDOW_NS)
        stats.turn_took(int(share * windows * WINDOW_NS))
        assert load.is_busy() is is_busy, why
