"""Ids seen before: of messages (Artemis manual, "Duplicate Message Detection"), and of commits."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, final

from artemis_py.core.addresses.address import Address, DuplicateIds
from artemis_py.core.memory import ID_BYTES, IDS, Holdings
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.errors import DuplicateError
from artemis_py.message import Message
from artemis_py.record_log import RecordLog

# ---- duplicates ------------------------------------------------------------------------------------------------------
#
# Leaves out messages whose duplicate id an address has seen (Artemis manual, "Duplicate Message Detection").


@final
class Duplicates:
    """``size`` is ``id-cache-size`` of the broker, for addresses without their own; ``keeps`` is
    ``persist-id-cache``.
    """

    __slots__ = ("_keeps", "_log", "_outcomes", "_size", "undecided")

    def __init__(self, log: RecordLog, outcomes: dict[int, PublishOutcome], size: int, *, keeps: bool) -> None:
        self._log = log
        self._outcomes = outcomes
        self._size = size
        self._keeps = keeps
        self.undecided: list[tuple[Address, Message]] = []
        """Messages that are nowhere but in copies on their way, and whose publishers wait to know."""

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
                    self._log.audit.refused(address.name, "duplicate", message)
                    outcome = self._outcomes.get(message.id)
                    if outcome is not None:
                        outcome.repeat(message.id)
                    continue
                seen.add(duplicate_id)
            kept.append(message)
        return kept

    def write(self, address: Address, messages: list[Message]) -> None:
        """Record the ids of messages that were published. If no queue kept a message, its publisher learns that and may
        send it again: then its id is forgotten.
        """
        for message in messages:
            duplicate_id = message.head.duplicate_id
            if duplicate_id is None:
                continue
            outcome = self._outcomes.get(message.id)
            if outcome is not None and not outcome.is_kept:
                self._ids_of(address).discard(duplicate_id)
            elif outcome is not None and not outcome.is_on_queue and not outcome.is_awaited:
                self.undecided.append((address, message))
            else:
                self._write(address, message, duplicate_id)

    def decide(self) -> None:
        """The copies are published: write down or forget the ids of those that were ``undecided``."""
        undecided, self.undecided = self.undecided, []
        for address, message in undecided:
            duplicate_id, outcome = message.head.duplicate_id, self._outcomes.get(message.id)
            if duplicate_id is None:
                continue
            if outcome is not None and not outcome.is_kept and not outcome.is_duplicate:
                self._ids_of(address).discard(duplicate_id)
            else:
                self._write(address, message, duplicate_id)

    def _write(self, address: Address, message: Message, duplicate_id: str) -> None:
        if self._keeps and not address.temporary:  # no restart brings that back
            lsn = self._log.duplicate_id(address.name, duplicate_id)
            message.lsn = message.lsn or lsn

    def forget(self, address: Address, messages: list[Message]) -> None:
        """Publishing failed: forget the ids of messages that nobody has, for they may be sent again."""
        for message in messages:
            duplicate_id = message.head.duplicate_id
            if duplicate_id is not None:
                self._ids_of(address).discard(duplicate_id)

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


# ---- commits ---------------------------------------------------------------------------------------------------------
#
# Transactions with an id: each is carried out once, even if a client that is unsure of the outcome repeats it.


NO_ADDRESS: Final = ""
"""Stands in the log's records instead of the address that has seen an id."""

_BETWEEN: Final = "\0"


@final
class Commits:
    """The last ``size`` ids under which transactions were committed. An address keeps those of messages in the same way
    (Artemis manual, "Duplicate Message Detection": "it will ignore the entire transaction").

    The ids belong to no address. So a transaction may go to any number of addresses, in any order, and its id outlives
    addresses that are deleted. An id may come with a digest of what the transaction holds; the broker only compares it.
    """

    def __init__(self, size: int, holdings: Holdings, *, keeps: bool) -> None:
        self.size = size
        self._holdings = holdings
        self.keeps = keeps
        """Do the ids survive a restart (``persist-id-cache``)?"""
        self._digests: OrderedDict[str, str] = OrderedDict()

    def has_seen(self, commit_id: str, digest: str) -> bool:
        """Was a transaction committed under this id?

        Raises DuplicateError when both came with a digest and these differ. Then this is another transaction, and
        neither repeating nor ignoring it is right.
        """
        seen = self._digests.get(commit_id)
        if seen is None:
            return False
        if seen and digest and seen != digest:
            raise DuplicateError(f"Transaction {commit_id[:200]} was already committed, with other messages")
        return True

    def remember(self, commit_id: str, digest: str, log: RecordLog) -> None:
        """Remember the id of a transaction that is being committed. The record joins the transaction's group in the
        log.
        """
        self._add(commit_id, digest)
        if self.keeps:
            log.duplicate_id(NO_ADDRESS, f"{commit_id}{_BETWEEN}{digest}" if digest else commit_id)

    def take_back(self, kept: list[str]) -> None:
        """Restore the ids that were known before a restart."""
        for one in kept:
            commit_id, _, digest = one.partition(_BETWEEN)
            self._add(commit_id, digest)

    def _add(self, commit_id: str, digest: str) -> None:
        if self.size <= 0:
            return
        before = self._digests.get(commit_id)
        if before is not None:
            self._holdings.move(IDS, -_size_of(commit_id, before))
        self._holdings.move(IDS, _size_of(commit_id, digest))
        self._digests[commit_id] = digest
        if len(self._digests) > self.size:
            self._holdings.move(IDS, -_size_of(*self._digests.popitem(last=False)))


def _size_of(commit_id: str, digest: str) -> int:
    return ID_BYTES + len(commit_id) + len(digest)
