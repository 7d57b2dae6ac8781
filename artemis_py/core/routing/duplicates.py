"""Leaves out messages whose duplicate id an address has seen (Artemis manual, "Duplicate Message Detection")."""

from __future__ import annotations

from typing import final

from artemis_py.core.addresses.address import Address
from artemis_py.core.addresses.duplicate_ids import DuplicateIds
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.message import Message
from artemis_py.records import RecordLog


@final
class Duplicates:
    """``size`` is ``id-cache-size`` of the broker, for addresses without their own; ``keeps`` is
    ``persist-id-cache``.
    """

    __slots__ = ("_keeps", "_log", "_outcomes", "_size")

    def __init__(self, log: RecordLog, outcomes: dict[int, PublishOutcome], size: int, *, keeps: bool) -> None:
        self._log = log
        self._outcomes = outcomes
        self._size = size
        self._keeps = keeps

    def has_seen(self, address: Address, message: Message) -> bool:
        """Has the address seen the message's duplicate id?"""
        duplicate_id = message.head.duplicate_id
        return duplicate_id is not None and self.knows(address, duplicate_id)

    def knows(self, address: Address, duplicate_id: str) -> bool:
        """Is the id one of those that the address has seen?"""
        return address.duplicate_ids is not None and duplicate_id in address.duplicate_ids

    def note(self, address: Address, duplicate_id: str) -> None:
        """The address has seen the id now. It is written down."""
        self._ids_of(address).add(duplicate_id)
        if self._keeps:
            self._log.duplicate_id(address.name, duplicate_id)

    def remember(self, address: Address, duplicate_ids: list[str]) -> None:
        """Take back the ids that an address had seen before a restart."""
        seen = self._ids_of(address)
        for duplicate_id in duplicate_ids:
            seen.add(duplicate_id)

    def leave_out(self, address: Address, messages: list[Message]) -> list[Message]:
        """The messages that the address has not seen, in order. Their ids are remembered, and must be written down when
        the messages are published (``write``). One that is left out gets the lsn up to which its first copy is
        certainly in the log.
        """
        kept: list[Message] = []
        for message in messages:
            duplicate_id = message.head.duplicate_id
            if duplicate_id is not None:
                seen = self._ids_of(address)
                if duplicate_id in seen:
                    message.lsn = self._log.last_lsn
                    address.duplicate_message_count += 1
                    self._log.story.refused(address.name, "duplicate", message)
                    outcome = self._outcomes.get(message.id)
                    if outcome is not None:
                        outcome.is_duplicate = True
                    continue
                seen.add(duplicate_id)
            kept.append(message)
        return kept

    def write(self, address: Address, messages: list[Message]) -> None:
        """Write down the ids of messages that were published. An id is forgotten whose publisher hears that the message
        is nowhere, and may send it again.
        """
        for message in messages:
            duplicate_id = message.head.duplicate_id
            if duplicate_id is None:
                continue
            outcome = self._outcomes.get(message.id)
            if outcome is not None and not outcome.is_kept:
                self._ids_of(address).discard(duplicate_id)
            elif self._keeps and not address.temporary:  # no restart brings that back
                lsn = self._log.duplicate_id(address.name, duplicate_id)
                message.lsn = message.lsn or lsn

    def _ids_of(self, address: Address) -> DuplicateIds:
        if address.duplicate_ids is None:
            address.duplicate_ids = DuplicateIds(self._size_for(address), address.memory.holdings)
        return address.duplicate_ids

    def _size_for(self, address: Address) -> int:
        own = address.settings.id_cache_size
        return self._size if own is None else own

    def settings_changed(self, address: Address) -> None:
        """The settings of an address were changed: perhaps it remembers another number of ids."""
        if address.duplicate_ids is not None:
            address.duplicate_ids.resize(self._size_for(address))
