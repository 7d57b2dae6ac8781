"""What a queue says itself of its deletion when nobody uses it any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, final

from artemis_py.config.settings import AddressSettings


@final
@dataclass(frozen=True, slots=True)
class AutoDelete:
    """``auto-delete``, ``auto-delete-delay`` (ms) and ``auto-delete-message-count`` (-1: any number) of a queue. What
    is None, the address-settings say.
    """

    is_wanted: bool | None = None
    delay_ms: int | None = None
    messages_max: int | None = None

    @property
    def says_nothing(self) -> bool:
        """Do the address-settings say everything?"""
        return self.is_wanted is None and self.delay_ms is None and self.messages_max is None

    def within(self, settings: AddressSettings, *, auto_created: bool) -> Deletion:
        """What counts for a queue on an address with these settings."""
        allowed = settings.auto_delete_queues if auto_created else settings.auto_delete_created_queues
        return Deletion(
            allowed if self.is_wanted is None else self.is_wanted,
            settings.auto_delete_queues_delay if self.delay_ms is None else self.delay_ms,
            settings.auto_delete_queues_message_count if self.messages_max is None else self.messages_max,
        )

    def fields(self) -> list[bool | int | None]:
        """What a restart must know."""
        return [self.is_wanted, self.delay_ms, self.messages_max]


class Deletion(NamedTuple):
    """Is a queue deleted when nobody uses it, after how many ms, and with how many messages at most (-1: any)?"""

    is_wanted: bool
    delay_ms: int
    messages_max: int


NOTHING_SAID: Final = AutoDelete()


def deletion_of(own: AutoDelete | None, settings: AddressSettings, *, auto_created: bool) -> Deletion:
    """The same for a queue that may say nothing itself."""
    return (own or NOTHING_SAID).within(settings, auto_created=auto_created)
