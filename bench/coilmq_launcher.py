"""Starts CoilMQ on a port of loopback: ``python coilmq_launcher.py PORT``, with the Python of CoilMQ's environment.

CoilMQ's frame buffer fails on a frame that is split between two reads, and keeps every byte it was ever sent. Here it
is handed whole frames and a new buffer for each read, so that it can be measured at all under bulk load; everything
behind the buffer is CoilMQ's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from coilmq.queue import QueueManager  # type: ignore[import-not-found]
from coilmq.scheduler import FavorReliableSubscriberScheduler, RandomQueueScheduler  # type: ignore[import-not-found]
from coilmq.server.socket_server import StompRequestHandler, ThreadedStompServer  # type: ignore[import-not-found]
from coilmq.store.memory import MemoryQueue  # type: ignore[import-not-found]
from coilmq.topic import TopicManager  # type: ignore[import-not-found]
from coilmq.util.frames import FrameBuffer  # type: ignore[import-not-found]

# As CoilMQ reads: a larger block is no faster and costs each idle connection its size.
READ_BYTES = 4096


class WholeFrames(StompRequestHandler):  # type: ignore[misc]
    """Reads up to the last NUL and keeps the rest for the next read. Correct for bodies without NUL, as sent here."""

    def iter_frames(self) -> Iterator[Any]:
        """Frames, until the client closes or the server stops."""
        rest = b""
        while not self.server.shutdown_requested.is_set():
            try:
                data = self.request.recv(READ_BYTES)
            except TimeoutError:
                continue
            except ConnectionError:
                return
            if not data:
                return
            whole, nul, rest = (rest + data).rpartition(b"\0")
            if nul:
                buffer = FrameBuffer()
                buffer.append(whole + nul)
                yield from buffer


class Server(ThreadedStompServer):  # type: ignore[misc]
    """CoilMQ's threaded server, with a listen backlog for a thousand clients instead of five."""

    request_queue_size = 1024
    daemon_threads = True


def main(port: int) -> None:
    """Serves until the process is stopped."""
    queues = QueueManager(
        store=MemoryQueue(),
        subscriber_scheduler=FavorReliableSubscriberScheduler(),
        queue_scheduler=RandomQueueScheduler(),
    )
    server = Server(
        ("127.0.0.1", port), RequestHandlerClass=WholeFrames, queue_manager=queues, topic_manager=TopicManager()
    )
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
