"""The thread that surveys closed segments of a retained log, so that readers need not read all of it.

It works briefly and rests four times as long, and it waits while the broker is busy: turns go first. The thread that
retires segments writes the results, so a segment is never moved or removed while a file is added to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from artemis_py.storage.format.places import places_name
from artemis_py.storage.journal.sidecars import index_beside
from artemis_py.storage.retention.survey import Survey

_RECORDS: Final = 256
_REST: Final = 4
"""How many records are read at a time, and how many times longer the thread then rests."""
_WAIT_S: Final = 0.05
"""How long to wait before asking a busy broker again."""
Found = Callable[[int, dict[str, Any], bytes], None]


class Surveyor:
    """``find`` returns where a segment is now, or None if it is gone. ``found`` takes a segment's number, the fields of
    its index and its file of places. Both are called in the surveyor's thread.
    """

    def __init__(self, find: Callable[[int], Path | None], found: Found) -> None:
        self._find = find
        self._found = found
        self._numbers: SimpleQueue[int | None] = SimpleQueue()
        self._is_busy: Callable[[], bool] = lambda: False
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="surveyor", daemon=True)
        self._thread.start()

    def add(self, number: int) -> None:
        """A segment was closed. One already surveyed is skipped."""
        self._numbers.put(number)

    def give_way(self, is_busy: Callable[[], bool]) -> None:
        """Wait from now on while the broker is busy; ``is_busy`` is called in the surveyor's thread."""
        self._is_busy = is_busy

    def stop(self) -> None:
        """End the thread. The next start surveys the rest, as far as it is still in the journal."""
        self._is_stopping = True
        self._numbers.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (number := self._numbers.get()) is not None and not self._is_stopping:
            with suppress(Exception):  # it moved twice, is damaged or has unexpected content: readers read all of it
                self._survey(number)

    def _survey(self, number: int) -> None:
        for _ in range(2):  # it may move between being found and being read
            path = self._find(number)
            if path is None:
                return
            with suppress(FileNotFoundError):
                fields = index_beside(path)
                if "places" in fields and path.with_name(places_name(path.name)).exists():
                    return
                survey = Survey(path.read_bytes(), fields["bytes"])
                break
        else:
            return
        is_more = True
        while is_more:
            if self._is_stopping:
                return
            if self._is_busy():
                time.sleep(_WAIT_S)
                continue
            began_s = time.perf_counter()
            is_more = survey.step(_RECORDS)
            time.sleep(_REST * (time.perf_counter() - began_s))
        self._found(number, survey.fields(), survey.places())
