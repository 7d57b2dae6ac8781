"""What clients were promised, what they saw, and where the two disagree.

The ledger knows nothing of sockets or processes. A *session* is one consumer from its SUBSCRIBE to its end; a broker
that is killed ends all of them. What was asked for and never confirmed (a SEND, an ACK or a COMMIT without its RECEIPT)
may have happened or not, and the ledger accepts either, but not half of it, and not first one and then the other.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple


class Key(NamedTuple):
    """One message in one queue. ``group`` is the transaction that sent it, 0 for none."""

    queue: str
    producer: str
    number: int
    group: int = 0


@dataclass(slots=True)
class Fate:
    """What became of one message in one queue."""

    round: int
    promised: bool = False
    seen: bool = False
    seen_at_end: bool = False
    ack_session: int = 0
    """The session that sent an ACK for it, while that may have counted; 0 for none."""
    ack_group: int = 0
    settled_round: int = 0
    """When its ACK was receipted; 0: never."""


@dataclass(slots=True)
class Group:
    """A transaction: messages sent and messages acknowledged in it."""

    round: int
    sends: list[Key]
    acks: list[Key]
    promised: bool = False
    refuted: set[Key] = field(default_factory=set)
    """Messages that came again although the transaction acknowledged them: so it did not happen."""


@dataclass
class Session:
    """One consumer: the last number it saw of each producer."""

    number: int = field(default_factory=itertools.count(1).__next__)
    last_by_producer: dict[str, int] = field(default_factory=dict)


@dataclass
class Ledger:
    """Filled by many threads; ``problems`` are sentences, empty when every promise was kept and nothing else went
    wrong.
    """

    round: int = 1
    is_end: bool = False
    fates: dict[Key, Fate] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    delivered_count: int = 0
    _lock: Lock = field(default_factory=Lock)

    def note(self, problem: str) -> None:
        """Something is not as it should be in this round."""
        self.problems.append(f"round {self.round}: {problem}")

    # ---- what clients ask for and are promised ---------------------------------------------------

    def sending(self, keys: Iterable[Key]) -> None:
        """A SEND leaves; with several queues bound to its address it has several keys."""
        with self._lock:
            for key in keys:
                self.fates[key] = Fate(self.round)

    def sent(self, keys: Iterable[Key]) -> None:
        """Its RECEIPT came."""
        with self._lock:
            for key in keys:
                self.fates[key].promised = True

    def acknowledging(self, session: Session, keys: Iterable[Key]) -> None:
        """An ACK leaves."""
        with self._lock:
            for key in keys:
                self.fates[key].ack_session = session.number

    def acknowledged(self, keys: Iterable[Key]) -> None:
        """Its RECEIPT came."""
        with self._lock:
            for key in keys:
                self.fates[key].settled_round = self.round

    def committing(self, number: int, sends: list[Key], acks: list[Key], session: Session | None = None) -> None:
        """A transaction leaves, with its SENDs, the session's ACKs and the COMMIT."""
        self.sending(sends)
        if session is not None:
            self.acknowledging(session, acks)
        with self._lock:
            self.groups[number] = Group(self.round, sends, acks)
            for key in acks:
                self.fates[key].ack_group = number

    def committed(self, number: int) -> None:
        """Its RECEIPT came."""
        group = self.groups[number]
        self.sent(group.sends)
        self.acknowledged(group.acks)
        group.promised = True

    # ---- what clients see ------------------------------------------------------------------------

    def delivered(self, session: Session, key: Key) -> None:
        """A MESSAGE came."""
        with self._lock:
            self.delivered_count += 1
            fate = self.fates.get(key)
            if fate is None:
                self.note(f"{key} was delivered and never sent")
                return
            last = session.last_by_producer.get(key.producer, 0)
            if key.number <= last:
                self.note(f"{key} was delivered after number {last} of its producer")
            session.last_by_producer[key.producer] = max(last, key.number)
            if fate.settled_round:
                self.note(f"{key} was delivered, but its ACK was receipted in round {fate.settled_round}")
            if fate.ack_group and fate.ack_session != session.number:
                self.groups[fate.ack_group].refuted.add(key)
                fate.ack_group = 0
            if fate.ack_session != session.number:
                fate.ack_session = 0
            fate.seen = True
            fate.seen_at_end = self.is_end

    # ---- the verdict -----------------------------------------------------------------------------

    def judge(self) -> None:
        """After every queue was read to its end, without acknowledging, in rounds where ``is_end`` was set."""
        for key, fate in self.fates.items():
            if fate.seen_at_end or fate.ack_session or fate.settled_round:
                continue
            if fate.promised:
                self.note(f"{key} is lost: its SEND was receipted in round {fate.round}")
            elif fate.seen:
                self.note(f"{key} is lost: it had been delivered, sent in round {fate.round}")
        for number, group in self.groups.items():
            seen = [key for key in group.sends if self.fates[key].seen]
            what = f"transaction {number} of round {group.round}"
            if seen and len(seen) != len(group.sends):
                missing = sorted(set(group.sends) - set(seen))
                self.note(f"{what} is torn: {len(seen)} of {len(group.sends)} messages came, without {missing[0]}")
            happened = bool(seen) or group.promised
            if happened and group.refuted:
                self.note(f"{what} happened, but {min(group.refuted)}, acknowledged in it, came again")
            if not happened and group.acks and len(group.refuted) != len(group.acks):
                missing = sorted(set(group.acks) - group.refuted)
                self.note(f"{what} did not happen, but {missing[0]}, acknowledged in it, is gone")
        groups_by_message: dict[tuple[str, str, int], list[int]] = defaultdict(list)
        for key, fate in self.fates.items():
            if fate.seen:
                groups_by_message[key[:3]].append(key.group)
        for name, groups in groups_by_message.items():
            if len(groups) > 1:
                self.note(f"{name} was moved by several transactions: {groups}")
