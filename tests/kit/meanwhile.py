"""What others do while a test does something else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meanwhile(work: Callable[[], object], times: int = sys.maxsize, pause_s: float = 0.0) -> Iterator[None]:
    """A thread does this again and again until the end of the block, at most so often. It must not have failed."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def go_on() -> None:
        try:
            for _ in range(times):
                if ended.wait(pause_s):
                    return
                work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not failures, failures
