"""What producers were promised, written by them alone, beside what a query delivered: the judge of the kill test.

Nothing here knows Spark or the log: ids, checksums, headers and transactions come from the producers' own hands.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32


@dataclass(slots=True)
class Sent:
    """One message as its producer made it."""

    id: str
    address: str
    producer: str
    number: int
    checksum: int
    headers: Mapping[str, str]
    group: str = ""
    """The transaction it was sent in; empty: none."""
    promised: bool = False
    """Its receipt came, or that of its COMMIT."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """One row as a sink has it; ``id`` is the name that the producer gave it."""

    id: str
    address: str
    value: bytes
    headers: Mapping[str, str]
    offset: int
    message_id: int
    transaction: str | None
    broker: str = ""


COLUMNS: Final = ["address", "value", "headers", "offset", "messageId", "transaction", "broker"]
"""Of a row that is judged."""


def delivered(rows: Iterable[Any]) -> list[Delivered]:
    """Rows of a query, whatever kind of mapping they are."""
    found = []
    for row in rows:
        headers = {one["key"]: one["value"].decode() for one in row["headers"]}
        whole = headers.get("x-id", "?"), row["address"], bytes(row["value"]), headers
        found.append(Delivered(*whole, row["offset"], row["messageId"], row["transaction"], row["broker"]))
    return found


@dataclass
class PipelineLedger:
    """Filled by producers and consumers in their threads: before bytes leave, and after their receipt came."""

    sent: dict[str, Sent] = field(default_factory=dict)
    aborted: set[str] = field(default_factory=set)
    """Ids whose transaction was ended by ABORT, or never got a COMMIT."""
    acks_asked: set[str] = field(default_factory=set)
    acks_confirmed: set[str] = field(default_factory=set)

    # ---- the judgement ---------------------------------------------------------------------------

    def problems(self, rows: Sequence[Delivered], *, addresses: Iterable[str] = ()) -> list[str]:
        """What a sink lacks, has twice, changed, or has though nobody sent it. ``addresses``: of these alone."""
        wanted = set(addresses) or {one.address for one in self.sent.values()}
        counts = Counter(row.id for row in rows)
        found = [
            f"{one.id} is lost: its receipt had come"
            for one in self.sent.values()
            if one.promised and one.address in wanted and not counts[one.id]
        ]
        found += [f"{name} is there {count} times" for name, count in counts.items() if count > 1]
        found += [f"{name} is there and was never sent" for name in counts if name not in self.sent]
        found += [f"{name} is there and its transaction never happened" for name in counts if name in self.aborted]
        for row in rows:
            if (one := self.sent.get(row.id)) is None:
                continue
            if crc32(row.value) != one.checksum:
                found.append(f"{one.id} has another body")
            own = {name: value for name, value in row.headers.items() if name.startswith("x-")}
            if own != one.headers:
                found.append(f"{one.id} has the headers {own} and was sent with {one.headers}")
            if row.address != one.address:
                found.append(f"{one.id} is of {row.address} and was sent to {one.address}")
        return found

    def transaction_problems(self, rows: Sequence[Delivered]) -> list[str]:
        """Torn transactions, and a column ``transaction`` that joins or parts what was not sent so."""
        sizes = Counter(one.group for one in self.sent.values())
        seen: Counter[str] = Counter()
        named: dict[str, set[str | None]] = defaultdict(set)
        groups: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            if (one := self.sent.get(row.id)) is None:
                continue
            seen[one.group] += 1
            named[one.group].add(row.transaction)
            if row.transaction is not None:
                groups[row.transaction].add(one.group)
        found = [
            f"transaction {group} is torn: {count} of {sizes[group]}"
            for group, count in seen.items()
            if group and count != sizes[group]
        ]
        found += [f"transaction {group} has the names {names}" for group, names in named.items() if len(names) > 1]
        if named[""] - {None}:
            found.append("messages without a transaction are given one")
        found += [f"transaction {group} has no name" for group, names in named.items() if group and None in names]
        found += [f"{name} names the transactions {them}" for name, them in groups.items() if len(them) > 1]
        return found

    def order_problems(self, rows: Sequence[Delivered]) -> list[str]:
        """Whether what one producer sent to one address is in its order."""
        last: dict[tuple[str, str], int] = {}
        found = []
        for row in sorted(rows, key=lambda row: row.offset):
            if (one := self.sent.get(row.id)) is None:
                continue
            key = (one.producer, one.address)
            if one.number < last.get(key, 0):
                found.append(f"{one.id} comes after number {last[key]}")
            last[key] = one.number
        return found

    def depth_problems(self, depths: Mapping[str, Mapping[str, int]]) -> list[str]:
        """``depths`` by source (the broker itself, the log by url, by directory) and queue: equal, and such as the
        receipts allow.
        """
        found = []
        sent = list(self.sent.values())
        for queue in sorted({one.address for one in sent}):
            told = {source: of.get(queue, 0) for source, of in depths.items()}
            if len(set(told.values())) > 1:
                found.append(f"the depths of {queue} differ: {told}")
            here = [one for one in sent if one.address == queue and one.id not in self.aborted]
            least = sum(one.promised for one in here) - sum(one.id in self.acks_asked for one in here)
            most = len(here) - sum(one.id in self.acks_confirmed for one in here)
            found += [
                f"{source} says {queue} holds {depth}; receipts allow {least} to {most}"
                for source, depth in told.items()
                if not least <= depth <= most
            ]
        return found

    def acknowledgement_problems(self, rows: Sequence[Delivered], acked: Counter[int]) -> list[str]:
        """``acked``: how often the log tells of the acknowledgement of a message, by its number."""
        names = {row.message_id: row.id for row in rows}
        found = [f"{names.get(number)} is acknowledged {count} times" for number, count in acked.items() if count > 1]
        told = {names.get(number) for number in acked}
        found += [f"the acknowledgement of {name} is lost" for name in sorted(self.acks_confirmed - told)]
        found += [f"{name} is acknowledged though nobody asked" for name in told - self.acks_asked]
        return found
