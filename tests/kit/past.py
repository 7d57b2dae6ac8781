"""A broker with a past: its file changes from one life to the next."""

from __future__ import annotations

from tests.kit.crash.retained import Archive
from tests.kit.life import Life
from tests.kit.replays import Stage
from tests.kit.views import addresses

RETAINED = "<journal-retention-directory unit='DAYS' period='7'>kept</journal-retention-directory>"


class Past(Stage):
    """A broker whose file changes from one life to the next."""

    address = "/queue/orders.eu"

    def __init__(self, *declared: str, before: Past | None = None, settings: str = "") -> None:
        core = RETAINED + addresses(*declared, settings=settings)
        if before is not None:
            before.life.broker.drain()
        super().__init__(
            life=Life(
                "",
                None if before is None else before.life.disk,
                archive=Archive() if before is None else before.archive,
                instead=core,
            )
        )

    def then(self, *declared: str, settings: str = "") -> Past:
        """The next life, with another file."""
        return Past(*declared, before=self, settings=settings)
