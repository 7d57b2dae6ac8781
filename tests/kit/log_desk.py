"""A journal with a view of its log."""

from __future__ import annotations

import json
from functools import partialmethod
from pathlib import Path
from typing import Any

from artemis_py.server.log_view import LogView
from tests.kit.journal_with_cursors import JournalWithCursors


class Desk(JournalWithCursors):
    """A journal with a view of its log; one message stays, so that nothing leaves it unless the test moves it, and no
    more than ``bytes_max`` is retained.
    """

    def __init__(self, folder: Path, bytes_max: int | None = None) -> None:
        super().__init__(folder, bytes_max=bytes_max)
        self.journal.records.queue_changed({"id": 1, "name": "q", "address": "a"})
        self.view = LogView(self.journal, folder / "journal", "id", [], self.retention)

    keep = partialmethod(JournalWithCursors.write, queue_ids=(1,))
    """Messages that stay."""

    def listed(self, after_lsn: int = -1) -> list[dict[str, Any]]:
        """The segments of a listing."""
        return self.read(self.view.listing("b", 7, after_lsn)())

    @staticmethod
    def read(pieces: list[bytes]) -> list[dict[str, Any]]:
        """The segments in a listing's pieces."""
        found: list[dict[str, Any]] = json.loads(b"".join(pieces))["segments"]
        return found

    def move(self, number: int) -> Path:
        """Retention moves a file, and is stopped before it has taken note of it."""
        taking = self.retention._add
        self.retention._add = lambda path: None  # type: ignore[method-assign]
        self.retention.retire(f"artemis-journal-{number:012}.log")
        self.retention._add = taking  # type: ignore[method-assign]
        target = self.retention.path_of(number)
        assert target is not None
        return target
