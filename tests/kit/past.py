"""A broker with a past: its file changes from one life to the next."""

from __future__ import annotations

from tests.kit.crash.retained import Archive
from tests.kit.life import Life
from tests.kit.views import addresses

RETAINED = "<journal-retention-directory unit='DAYS' period='7'>kept</journal-retention-directory>"


class Past(Life):
    """A broker whose file changes from one life to the next."""

    address = "/queue/orders.eu"

    def __init__(self, *declared: str, before: Past | None = None, settings: str = "") -> None:
        super().__init__(
            disk=None if before is None else before.disk,
            archive=Archive() if before is None else before.archive,
            instead=RETAINED + addresses(*declared, settings=settings),
        )
