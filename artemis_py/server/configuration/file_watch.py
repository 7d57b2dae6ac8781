"""Watches files of the configuration for changes: by the system's events, and where there are none by checking.

It watches folders, not files: editors replace the old file by a new one, and a ConfigMap of Kubernetes is a
chain of links of which one is exchanged.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from artemis_py.server.configuration.reading import Stamps, stamps_of

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

_QUIET_S: Final = 0.1
"""How long no event must come before the files are read: an edit is several events."""
_LATEST_S: Final = 1.0
"""After this time they are read even while events come."""
_LINKS_MAX: Final = 16
_OPENINGS: Final = ("opened", "closed_no_write")
"""Events of those who only read."""


@final
class FileWatch:
    """Calls ``changed`` on the loop when a file differs from what it was when ``note`` was called last. ``period_s`` is
    how often to look where the system has no events.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, path: Path, period_s: float, changed: Callable[[], None]
    ) -> None:
        self.has_events = False
        """Does the system report changes?"""
        self._loop = loop
        self._path = path
        self._period_s = period_s
        self._changed = changed
        self._files: tuple[str, ...] = ()
        self._stamps: Stamps = ()
        self._observer: BaseObserver | None = None
        self._folders: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._first_s = 0.0
        """When the first event came that was not looked at; 0: none."""
        self._is_ended = False

    async def begin(self, files: Iterable[str], read: Stamps) -> None:
        """Watch from now on. ``read`` says what the files were when the broker began: what has changed since is seen,
        too.
        """
        self._files, self._stamps = tuple(files), read
        await self._loop.run_in_executor(None, import_module, "watchdog.observers")  # not while the broker starts
        if not self._is_ended:
            self.note(self._files, self._stamps)
            self._loop.call_later(self._period_s, self._check_sometimes)

    def stamps(self) -> Stamps:
        """What the files are now."""
        return stamps_of(self._path, self._files)

    def note(self, files: Iterable[str], read: Stamps) -> None:
        """These are the files of the configuration. ``read`` says what they were when they were read: what has changed
        since is read again.
        """
        self._files = tuple(files)
        known = dict(read)
        self._stamps = tuple((name, known.get(name, stamp)) for name, stamp in self.stamps())
        folders = _folders_of(self._path, self._files)
        if folders != self._folders:
            self._folders = folders
            self._watch(folders)
        self._check()

    def end(self) -> None:
        """Watch no longer."""
        self._is_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._unwatch()

    def _watch(self, folders: Iterable[str]) -> None:
        from watchdog.events import FileSystemEventHandler
        from watchdog.observers import Observer

        self._unwatch()
        handler = FileSystemEventHandler()
        handler.on_any_event = self._event  # type: ignore[method-assign]
        observer = Observer()
        observer.daemon = True
        try:
            for folder in sorted(folders):
                observer.schedule(handler, folder, recursive=False)
            observer.start()
        except OSError:  # the system has no events left, or this folder has none
            self.has_events = False
            observer.unschedule_all()
            return
        self.has_events = True
        self._observer = observer

    def _unwatch(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer = None

    def _event(self, event: FileSystemEvent) -> None:
        """In a thread of the observer."""
        if event.event_type in _OPENINGS:
            return
        try:
            self._loop.call_soon_threadsafe(self._wait)
        except RuntimeError:
            return  # the loop is closed

    def _wait(self) -> None:
        """Something happened in a folder: look when it is quiet there."""
        if self._is_ended:
            return
        now_s = self._loop.time()
        if not self._first_s:
            self._first_s = now_s
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(min(_QUIET_S, max(self._first_s + _LATEST_S - now_s, 0)), self._check)

    def _check(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._first_s = None, 0.0
        if not self._is_ended and stamps_of(self._path, self._files) != self._stamps:
            self._changed()

    def _check_sometimes(self) -> None:
        """Where the system has no events."""
        if self._is_ended:
            return
        self._loop.call_later(self._period_s, self._check_sometimes)
        if not self.has_events:
            self._check()


def _folders_of(path: Path, files: Iterable[str]) -> set[str]:
    """The folders in which something happens when a file changes: those on the way along its links."""
    found: set[str] = set()
    for file in {str(path), *(part for each in files for part in each.split(","))}:
        place = os.path.abspath(file)
        if os.path.isdir(place):
            found.add(place)
            continue
        for _ in range(_LINKS_MAX):
            found.add(os.path.dirname(place))
            if not os.path.islink(place):
                break
            place = os.path.normpath(os.path.join(os.path.dirname(place), os.readlink(place)))
        found.add(os.path.dirname(os.path.realpath(file)))
    return {folder for folder in found if os.path.isdir(folder)}
