"""Brokers' logs that change while nobody reads them, or in the middle: they are read from directories that no broker
has, or over a url that stays.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from artemis_py.spark.jobs.archive import LogFeed
from artemis_py.spark.read.options import read_options
from artemis_py.spark.read.plan import opened
from tests.spark.live import LiveBroker

KINDS: Final = ("journal", "url")
_SENT_AT_ONCE: Final = 10
"""So few that the broker may close a segment behind them."""


def feed(source: dict[str, str], step_bytes: int = 1) -> LogFeed:
    """Of the one log there, as the archive's job makes it; by default with a step for each segment."""
    [(_, log)] = opened(read_options(source)).values()
    return LogFeed(log, source, "archive", step_bytes=step_bytes)


@dataclass
class Logs:
    """Folders of brokers, of which each may be started under any name: ``e2e``, if no other is told."""

    folder: Path
    kind: str
    body_bytes: int = 0
    lives: dict[str, LiveBroker] = field(default_factory=dict)

    @contextmanager
    def running(self, folder: str = "e2e", name: str | None = None) -> Iterator[LiveBroker]:
        """The broker, for as long as this lasts; on the ports that it had before. One that runs goes on."""
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        live = self.lives.get(folder)
        if live is None:
            live = self.lives[folder] = LiveBroker(self.folder / folder, name=name or folder)
        elif live.process.process.poll() is None:
            yield live
            return
        else:
            live.start_again(name or folder)
        try:
            yield live
        finally:
            live.process.kill()

    @contextmanager
    def source(self, **named: str) -> Iterator[dict[str, str]]:
        """Where the logs of these folders, under these names, are to be read."""
        named = named or {"e2e": "e2e"}
        if self.kind == "journal":
            for path in self.segments():  # the last batch of a file counts when it has rested
                os.utime(path, (0, 0))
            yield {"journal": ",".join(f"{name}={self.folder / folder}" for folder, name in named.items())}
            return
        with ExitStack() as stack:
            lives = [stack.enter_context(self.running(*both)) for both in named.items()]
            yield {"url": ",".join(live.url for live in lives)}

    def send(self, first: int, count: int, folder: str = "e2e", name: str | None = None) -> None:
        """Publish. Without a message for the queue there is one for another: until something is confirmed, a broker
        that is killed has no log.
        """
        with self.running(folder, name) as live:
            for begin in range(first, first + count, _SENT_AT_ONCE):
                live.send(begin, min(_SENT_AT_ONCE, first + count - begin), size_bytes=self.body_bytes)
            if not count:
                live.send(0, 1, "others")

    def exchange(self, backup: Path | None = None) -> None:
        """Another log comes to the place: a new one, which is empty, or an older copy with all files, the id too."""
        live, place = self.lives["e2e"], self.folder / "e2e"
        is_up = live.process.process.poll() is None
        live.process.kill()
        shutil.rmtree(place)
        if backup is None:
            place.mkdir()
        else:
            shutil.copytree(backup, place)
        if is_up:
            live.start_again()

    def segments(self) -> list[Path]:
        """In order."""
        return sorted(self.folder.glob("**/artemis-journal-*.log"), key=lambda path: path.name)
