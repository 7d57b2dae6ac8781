"""Parts of files over TLS: the thread encrypts them piece by piece, whatever the socket accepts at once."""

from __future__ import annotations

import os
import queue
import socket
import threading
from pathlib import Path

import pytest

from artemis_py.server.http.file_sender import PIECE_BYTES, FileSender
from artemis_py.server.http.requests import FileBody, HttpLimits

CONTENT = os.urandom(3 * PIECE_BYTES + 777)
WAIT_S = 120.0
TURN = bytes(range(255, -1, -1))


def turned(data: bytes) -> bytes:
    """Stands for encryption: other bytes, and more of them."""
    return b"<" + data.translate(TURN) + b">"


class Stage:
    """A sender, and a socket that accepts a few kilobytes at once."""

    def __init__(self, folder: Path) -> None:
        self.results: queue.Queue[OSError | None] = queue.Queue()
        self.sender = FileSender(lambda call: call(), HttpLimits(), lambda: False)
        self.near, self.far = socket.socketpair()
        self.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.near.setblocking(False)
        self.far.settimeout(WAIT_S)
        self.file = folder / "file"
        self.file.write_bytes(CONTENT)

    def send(self, offset: int, size_bytes: int) -> object:
        body = FileBody(os.open(self.file, os.O_RDONLY), offset, size_bytes)
        return self.sender.send(self.near.fileno(), body, False, self.results.put, turned)

    def close(self) -> None:
        self.sender.stop()
        self.near.close()
        self.far.close()


@pytest.mark.parametrize(("offset", "size_bytes"), [(0, len(CONTENT)), (13, 2 * PIECE_BYTES), (5, 1)])
def test_every_piece_arrives_encrypted_and_whole(tmp_path: Path, offset: int, size_bytes: int) -> None:
    stage = Stage(tmp_path)
    transfer = stage.send(offset, size_bytes)
    pieces = [
        CONTENT[at : min(at + PIECE_BYTES, offset + size_bytes)]
        for at in range(offset, offset + size_bytes, PIECE_BYTES)
    ]
    wanted = b"".join(map(turned, pieces))
    got = b""
    while len(got) < len(wanted):
        got += stage.far.recv(3_000)
    assert got == wanted
    assert stage.results.get(timeout=WAIT_S) is None
    assert (transfer.sent_bytes, transfer.accepted_bytes) == (size_bytes, len(wanted))  # type: ignore[attr-defined]
    stage.close()


def test_a_file_that_is_too_short_and_a_client_that_leaves_are_failures(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    reader = threading.Thread(target=lambda: [None for _ in iter(lambda: stage.far.recv(65_536), b"")])
    reader.start()
    stage.send(0, len(CONTENT) + 1)
    assert "shorter than announced" in str(stage.results.get(timeout=WAIT_S))
    stage.near.shutdown(socket.SHUT_WR)
    reader.join()
    stage.far.close()
    stage.send(0, len(CONTENT))
    assert isinstance(stage.results.get(timeout=WAIT_S), OSError)
    stage.close()
