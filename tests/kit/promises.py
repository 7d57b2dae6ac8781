"""What a store has promised, beside what a start finds."""

from __future__ import annotations

from dataclasses import dataclass, field

from artemis_py.storage.disk.disk import DiskError


@dataclass
class Promises:
    """Messages by their numbers, until a fault: those of which the store said that they are durable, and those whose
    end it said is; those that were written, and those that were to end.
    """

    promised: set[int] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    failure: DiskError | None = None

    def hold(self, kept: set[int], where: str) -> None:
        """A start finds these messages."""
        assert not (self.promised - self.ended) - kept, f"{where}: a promised message is lost"
        assert not kept & self.settled, f"{where}: a settled message comes again"
        assert kept <= self.written, where
        assert self.failure is not None or self.promised == self.written, where
