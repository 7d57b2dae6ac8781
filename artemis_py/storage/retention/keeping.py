"""What becomes of files that the broker no longer needs: deleted, or taken over by the retained log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from artemis_py.storage.bodies.past import FormerBodies
from artemis_py.storage.retention.retention import Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Callables that take over files. Without arguments: the files are deleted."""

    retire_segment: Callable[[str], None] | None = None
    """Takes over a segment, by name, and what is beside it. In the committer's thread."""
    retire_body: Callable[[str], None] | None = None
    """Takes over a large body, by name. In the body writer's thread."""
    chores: Callable[[], None] | None = None
    """Removes what is too old. In the committer's thread."""
    indexed: Callable[[int], None] | None = None
    """Takes the number of a segment that was closed and has its index beside it. In the committer's thread."""
    mark: Callable[[], Mark | None] | None = None
    """Returns how far the files reach that were taken over. Asked when the journal has no file itself."""
    bodies: FormerBodies | None = None
    """The bodies that ``retire_body`` takes over."""
    body_start_min: int = 1
    """The lowest number of a start whose large bodies cannot be among those that were taken over."""
