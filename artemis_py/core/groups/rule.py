"""Message groups: which group a message belongs to, and which message closes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final
from zlib import crc32

from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.message import HeaderName, Message

SHARED: Final = "SHARED_GROUPS"
_NONE: Final = "NONE"
_USUAL_NAMES: Final = ("JMSXGroupID", "JMSXGroupId", "_AMQ_GROUP_ID")
_USUAL_MARKS: Final = (b"JMSXGroupI", b"_AMQ_GROUP_ID")
_SEQUENCE_NAMES: Final = ("_AMQ_GROUP_SEQUENCE", "JMSXGroupSeq")
_LAST: Final = "-1"
_RULES_MAX: Final = 1024


@final
@dataclass(frozen=True, slots=True)
class GroupRule:
    """How a queue groups messages (the ``group-…`` attributes).

    ``names`` are the headers that may name the group. ``fallback`` is the group of messages that name none; None when
    they are in no group. ``buckets``: the number of buckets that groups are spread over; -1 keeps each group apart.
    """

    names: tuple[HeaderName, ...]
    marks: tuple[bytes, ...]
    """Every header block that names a group contains at least one of these."""
    shared: bool = False
    fallback: str | None = None
    buckets: int = -1
    rebalances: bool = False
    pauses: bool = False
    first_key: str | None = None
    sequence_names: tuple[HeaderName, ...] = tuple(HeaderName(name) for name in _SEQUENCE_NAMES)

    @staticmethod
    def of(own: QueueSettings) -> GroupRule | None:
        """The rule of a queue. None when nothing is grouped: grouping is off, one consumer gets everything (Artemis),
        or consumers take nothing away (row Q-29, tests/queues/rows.py).
        """
        if own.group_type == _NONE or own.group_buckets == 0 or own.exclusive or own.non_destructive:
            return None
        shared = own.group_type == SHARED
        return _rule(
            own.group_key,
            shared,
            own.fallback_group if shared else None,
            -1 if shared else own.group_buckets,
            own.group_rebalance and not shared,
            own.group_rebalance_pause_dispatch,
            own.group_first_key,
        )

    def group_of(self, message: Message) -> str | None:
        """The group of a message; None when it is in none. With buckets, the bucket's number stands for the group."""
        head = message.head
        for name in self.names:
            group = head.first(name)
            if group is not None:
                return self.key_of(group)
        return self.fallback

    def key_of(self, name: str) -> str:
        """What stands for the group of this name: the name, or the number of its bucket."""
        return name if self.buckets <= 0 else str(crc32(name.encode()) % self.buckets)

    def may_name_group(self, blocks: bytes) -> bool:
        """May a message with these header blocks name a group? False is certain. This is asked of every batch that
        comes to a plain queue.
        """
        if self.fallback is not None:
            return True
        for mark in self.marks:  # noqa: SIM110 - a generator would be a call for each mark
            if mark in blocks:
                return True
        return False

    def closes(self, message: Message) -> bool:
        """Does this message close its group (Artemis: group sequence -1)?"""
        return any(message.head.first(name) == _LAST for name in self.sequence_names)


@lru_cache(maxsize=_RULES_MAX)
def _rule(
    key: str | None,
    shared: bool,
    fallback: str | None,
    buckets: int,
    rebalances: bool,
    pauses: bool,
    first_key: str | None,
) -> GroupRule:
    """A rule. Queues that group alike share one."""
    names = tuple(HeaderName(name) for name in (_USUAL_NAMES if key is None else (key,)))
    return GroupRule(
        names=names,
        marks=_USUAL_MARKS if key is None else tuple(name.line for name in names),
        shared=shared,
        fallback=fallback,
        buckets=buckets,
        rebalances=rebalances,
        pauses=pauses,
        first_key=first_key,
    )
