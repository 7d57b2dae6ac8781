"""Shows the progress of a long work on one line of a terminal, which is overwritten and finally removed."""

from __future__ import annotations

import os
import shutil
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PERIOD_S: Final = 0.2
_BAR_WIDTH: Final = 24


def own_stream(stream: TextIO) -> TextIO:
    """A second stream to the same terminal, which stays while standard error is redirected during Java's start; the
    stream itself if it is not a terminal.
    """
    return os.fdopen(os.dup(stream.fileno()), "w", encoding=stream.encoding) if stream.isatty() else stream


class Progress:
    """A line on ``stream`` while the context is open; nothing if the stream is not a terminal."""

    def __init__(self, stream: TextIO, text: str = "starting Spark") -> None:
        self._stream = stream
        self._is_on = stream.isatty()
        self._text = text
        self._spark: SparkSession | None = None
        self._began_s = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        if self._is_on:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        if self._is_on:
            self._thread.join()
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def watch(self, spark: SparkSession) -> None:
        """Shows the stages of this session from now on."""
        self._spark = spark
        self._text = "working"

    def say(self, text: str) -> None:
        """Show the current activity."""
        self._text = text

    def tell(self, text: str) -> None:
        """Print a line that stays, even if the stream is not a terminal."""
        start = "\r\x1b[K" if self._is_on else ""
        self._stream.write(f"{start}{text}\n")
        self._stream.flush()

    def _run(self) -> None:
        while not self._end.wait(_PERIOD_S):
            line = line_of(self._text, time.monotonic() - self._began_s, self._tasks())
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{line[:width]}")
            self._stream.flush()

    def _tasks(self) -> tuple[int, int]:
        """Tasks done and in all, of the stages under way; (0, 0) when there are none."""
        if self._spark is None:
            return 0, 0
        try:
            tracker = self._spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except Exception:  # the session ends while it is being asked; there is nothing to show then
            return 0, 0
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)


def line_of(text: str, elapsed_s: float, tasks: tuple[int, int]) -> str:
    """The line itself."""
    done, total = tasks
    if not total:
        return f"{text} … {elapsed_s:.0f} s"
    filled = _BAR_WIDTH * done // total
    return f"{text} [{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done} of {total} tasks, {elapsed_s:.0f} s"
