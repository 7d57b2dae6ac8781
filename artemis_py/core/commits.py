"""Transactions with an id: each is carried out once, even if a client that is unsure of the outcome repeats it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, final

from artemis_py.core.holdings import ID_BYTES, IDS, Holdings
from artemis_py.errors import DuplicateError
from artemis_py.records import RecordLog

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
