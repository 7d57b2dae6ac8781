"""Dead and expired messages: to which address they go, the copies still to be made, and where a copy came from."""

from __future__ import annotations

from typing import Final, NamedTuple, final

from mypy_extensions import mypyc_attr

from artemis_py.config.settings import SettingsRepository
from artemis_py.config.tables.declarations import ANYCAST, MULTICAST
from artemis_py.core.queue_reference import QueueReference
from artemis_py.message import Head, HeaderName, Message
from artemis_py.record_log import RecordLog

# ---- addresses -------------------------------------------------------------------------------------------------------
#
# Where dead and expired messages go.


_ATTRIBUTES = ("dead_letter_address", "expiry_address")


@final
class DeadLetterAddresses:
    """The addresses that address-settings or queues name for dead and expired messages. An address that a queue has
    named stays until a restart, because messages of that queue may still be there.
    """

    __slots__ = ("_of_queues", "_of_settings")

    def __init__(self) -> None:
        self._of_settings: frozenset[str] = frozenset()
        self._of_queues: set[str] = set()

    def use(self, settings: SettingsRepository) -> None:
        """These settings count from now on."""
        named = [entry.values.get(attribute) for entry in settings.entries for attribute in _ATTRIBUTES]
        self._of_settings = frozenset(filter(None, named))

    def note(self, name: str | None) -> None:
        """A queue sends its dead messages to this address; None or empty: to none of its own."""
        if name:
            self._of_queues.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._of_settings or name in self._of_queues


def dead_letter_address_of(queue: QueueReference, of_address: str | None) -> str | None:
    """Where dead messages of a queue go; what the queue says itself counts before the address-setting."""
    own = queue.rules.dead_letter_address
    return of_address if own is None else own


def expiry_address_of(queue: QueueReference, of_address: str | None, dead_of_address: str | None) -> str | None:
    """Where expired messages of a queue go (``expiry-policy``; Qpid's alternate is the dead-letter address)."""
    if queue.rules.expiry_policy == "DELETE":
        return None
    if not of_address and queue.rules.expiry_policy == "ROUTE_TO_ALTERNATE":
        return dead_letter_address_of(queue, dead_of_address)
    return of_address


# ---- origin ----------------------------------------------------------------------------------------------------------
#
# Where a copy comes from, as its headers say: the queue on which its original died or expired, and why.


RETRIED_HEADER: Final = "_ART_RETRIED"
"""How often an operator has sent the message back to where it came from. No client may set it."""
_ADDRESS: Final = HeaderName("_AMQ_ORIG_ADDRESS")
_QUEUE: Final = HeaderName("_AMQ_ORIG_QUEUE")
_ROUTING_TYPE: Final = HeaderName("_AMQ_ORIG_ROUTING_TYPE")
_CAUSE: Final = HeaderName("reason")
_RETRIED: Final = HeaderName(RETRIED_HEADER)
_ROUTING_TYPES: Final = {"0": MULTICAST, "1": ANYCAST}
_NUMBER: Final = HeaderName("_AMQ_ORIG_MESSAGE_ID")
_COUNT_DIGITS_MAX: Final = 9
_NUMBER_DIGITS_MAX: Final = 20


class Origin(NamedTuple):
    """``address`` and ``queue`` are where the original was, ``cause`` why it is there no more. None: not known."""

    address: str | None
    queue: str | None
    cause: str | None


def origin_of(head: Head) -> Origin:
    """Where a message comes from; all None for one that a client sent."""
    return Origin(head.first(_ADDRESS), head.first(_QUEUE), cause_of(head))


def cause_of(head: Head) -> str | None:
    """Why the original left its queue; None for a message that a client sent."""
    return head.first(_CAUSE) if has_origin(head) else None


def has_origin(head: Head) -> bool:
    """Is the message a copy of one that was elsewhere?"""
    return head.first(_ADDRESS) is not None


def comes_from(head: Head, name: str) -> bool:
    """Is this the queue or the address from which the message comes?"""
    return name in {head.first(_QUEUE), head.first(_ADDRESS)}


def routing_type_of(head: Head) -> str | None:
    """The routing type with which the original was sent; None: it named none."""
    return _ROUTING_TYPES.get(head.first(_ROUTING_TYPE) or "")


def retried_count(head: Head) -> int:
    """How often the message was sent back to where it came from."""
    return _number(head, _RETRIED, _COUNT_DIGITS_MAX)


def original_number(head: Head) -> int:
    """The number of the message of which this is a copy; 0: it is none, or the header says nothing sensible."""
    return _number(head, _NUMBER, _NUMBER_DIGITS_MAX)


def _number(head: Head, name: HeaderName, digits_max: int) -> int:
    text = head.first(name) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits_max else 0


# ---- copies ----------------------------------------------------------------------------------------------------------
#
# Dead and expired messages whose copies belong on another address.


TIME_LIMIT: Final = "time_limit"
FORCED_EXPIRE: Final = "forced_expire"
"""Why a message expired, in the words of AMPS."""
NO_ROUTE: Final = "no_route"
"""Why a message is dead that no queue took (``send-to-dla-on-no-route``)."""
SENT_BY_OPERATOR: Final = "sent_by_operator"
"""Why a message is dead that an operator has sent to the dead letters."""
BRIDGE_LOOP: Final = "bridge_loop"
"""Why a message is dead that came back to a bridge which had forwarded it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Copies:
    """Queues note messages here when they die or expire, and the broker makes the copies later in the turn.

    From the first note to ``close`` the log writes one group, so the end of an original and its copy survive together
    or not at all.
    """

    def __init__(self, log: RecordLog) -> None:
        self.dead: list[tuple[QueueReference, Message, str]] = []
        self.expired: list[tuple[QueueReference, Message, str]] = []
        """Each with the reason that its copy names."""
        self.due: list[tuple[QueueReference, Message]] = []
        """Messages that are sent again and again, and now."""
        self.is_open = False
        """Is there a group to end?"""
        self._log = log

    def note_dead(self, queue: QueueReference, message: Message, reason: str) -> None:
        """The message failed for the last time: a copy belongs on the dead-letter address."""
        self._open()
        self.dead.append((queue, message, reason))

    def note_expired(self, queue: QueueReference, message: Message) -> None:
        """The message expired: a copy belongs on the expiry address."""
        self._open()
        self.expired.append((queue, message, TIME_LIMIT))

    def note_forced(self, queue: QueueReference, message: Message) -> None:
        """A consumer had the message expire: a copy belongs on the expiry address."""
        self._open()
        self.expired.append((queue, message, FORCED_EXPIRE))

    def note_due(self, queue: QueueReference, message: Message) -> None:
        """The message waited to be sent, perhaps not for the last time: it has left the queue."""
        self._open()
        self.due.append((queue, message))

    def join(self) -> None:
        """What is recorded next belongs to the group: an operator moves messages, and their copies are published at
        once.
        """
        self._open()

    def _open(self) -> None:
        if not self.is_open:
            self.is_open = True
            self._log.begin_group()

    def close(self) -> None:
        """All copies are made: end the group."""
        if self.is_open:
            self.is_open = False
            self._log.end_group()
