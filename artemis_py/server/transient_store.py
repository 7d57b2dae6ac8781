"""The files of a broker without persistence, which end with its process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from artemis_py.config.settings import BrokerConfig
from artemis_py.log_codes import STORAGE
from artemis_py.records import MemoryLog, RecoveredState
from artemis_py.server.bodies import TransientBodies, TransientFolder, may_be_made, remove_leftovers
from artemis_py.server.store import Store
from artemis_py.shown import warn
from artemis_py.storage.disk.committer import ThreadCommitter
from artemis_py.storage.pages.files import PageFiles
from artemis_py.storage.pages.spill import SpillLog


class TransientStore(Store):
    """The pages and large bodies of a broker without persistence, in folders that end with its process. If no folder
    can be created, the broker reports it, starts, and keeps everything in memory.
    """

    def __init__(self, config: BrokerConfig, wake: Callable[[], None], look: Callable[[], None]) -> None:
        with ExitStack() as opened:
            self._bodies = TransientBodies(config, wake, look)
            opened.callback(self._bodies.close)
            self.large = self._bodies.store
            self.report = list(self._bodies.report)
            self.pages = None
            self.log = self.durability = MemoryLog()
            directory = Path(config.paging_directory)
            self._folder = TransientFolder(directory, look)
            opened.callback(self._folder.close)
            self.folders = self._folder, self._bodies.folder
            if may_be_made(directory):
                self._open_pages(directory, wake, opened)
            else:
                self.report.append(
                    f"warning: {directory} cannot be created: nothing is paged, all messages stay in memory"
                )
            self._opened = opened.pop_all()

    def _open_pages(self, directory: Path, wake: Callable[[], None], opened: ExitStack) -> None:
        remove_leftovers(directory)
        writer, reader = ThreadCommitter(wake, "page writer"), ThreadCommitter(wake, "page reader")
        for thread in (reader, writer):
            opened.callback(thread.stop)
        say = partial(warn, code=STORAGE)
        pages = PageFiles(self._folder, reader, say)
        self.pages = pages
        self.log = self.durability = SpillLog(writer, pages, say)

    def recovered_state(self) -> RecoveredState:
        return RecoveredState()

    def directories(self) -> tuple[str, ...]:
        """Empty until a message was paged or a large body arrived."""
        return tuple(str(folder.directory) for folder in self.folders if folder.is_made)

    def make_room(self) -> None:
        """Nothing to do: pages wait until others are consumed, and large bodies are refused."""

    def look_after(self) -> None:
        """Nothing to do: these files end with the process."""

    def close(self) -> None:
        self._opened.close()
