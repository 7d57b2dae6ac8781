"""Frames that the parser gives to a session, and the parser's limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.memory import FRAME_BYTES, HEADER_BYTES
from artemis_py.core.recurrence import Recurrence
from artemis_py.errors import ArtemisError
from artemis_py.message import Head
from artemis_py.selector import CLIENT_LIMITS, SelectorLimits
from artemis_py.uploads import IncomingBody

VERSIONS: Final = ("1.0", "1.1", "1.2")
COMMANDS: Final = frozenset(
    {"SEND", "SUBSCRIBE", "UNSUBSCRIBE", "BEGIN", "COMMIT", "ABORT", "ACK", "NACK", "DISCONNECT", "CONNECT", "STOMP"}
)


ACK_RECEIPT_BYTES_MAX: Final = 64
"""ACKs with longer receipts are read by themselves."""
_ACK_BYTES_MAX: Final = len("ACK\nid:-\nreceipt:") + 2 * 18 + ACK_RECEIPT_BYTES_MAX
_ACK_HEADERS: Final = 2


class FrameError(ArtemisError):
    """A frame cannot be processed. If the parser raises it, nothing after it can be read. If it is raised while a frame
    is handled, ``syntax`` says whether the frame is malformed (a missing header, a forbidden body) or only asks for
    something impossible.
    """

    def __init__(
        self, message: str, receipt: str | None = None, *, syntax: bool = False, too_large: bool = False
    ) -> None:
        super().__init__(message)
        self.receipt = receipt
        self.syntax = syntax
        self.too_large = too_large
        """Is it over a limit of bytes?"""


class Frame:
    """Any frame except SEND: its command and decoded headers; of repeated headers the first."""

    __slots__ = ("command", "content_length", "headers")

    def __init__(self, command: str, headers: dict[str, str], content_length: int = -1) -> None:
        self.command = command
        self.headers = headers
        self.content_length = content_length
        """-1 if the frame has no content-length."""

    @property
    def size_bytes(self) -> int:
        """What the frame takes in memory, without a body."""
        texts = sum([len(name) + len(value) + HEADER_BYTES for name, value in self.headers.items()])
        return FRAME_BYTES + texts


class AckRun:
    """Consecutive STOMP 1.2 ACKs with an id, a receipt or none, and no other header."""

    __slots__ = ("acks",)

    def __init__(self, acks: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
        self.acks = acks
        """Each as the receipt before the id, the consumer's number and the message's, in digits, and the receipt behind
        the id. A receipt that is not there is empty.
        """

    @property
    def receipt(self) -> str | None:
        """The receipt that the first ACK asks for."""
        early, _, _, late = self.acks[0]
        return (early or late).decode() or None

    @property
    def size_bytes(self) -> int:
        """What the frames take in memory."""
        return (HEADER_BYTES + ACK_RECEIPT_BYTES_MAX) * len(self.acks)


class Refused:
    """A frame that is delimited but invalid: a bad value, or (STOMP 1.0) a bad line."""

    __slots__ = ("content_length", "incomplete", "reason", "receipt")

    def __init__(self, reason: str, receipt: str | None, content_length: int, *, incomplete: bool = False) -> None:
        self.incomplete = incomplete
        """True if a required header is missing, which some versions treat as bad syntax."""
        self.reason = reason
        self.receipt = receipt
        self.content_length = content_length

    @property
    def size_bytes(self) -> int:
        """What the frame takes in memory, without a body."""
        return FRAME_BYTES


class Shape:
    """The meaning of a SEND's deciding headers, shared by every frame that repeats them. It does not include headers
    that only pass through.
    """

    __slots__ = (
        "address", "block", "destination", "due_delay_ms", "due_ms", "duplicate_id", "expires_ms", "persistent",
        "plain", "priority", "queue", "recurrence", "routing_type", "target", "simple",
    )  # fmt: skip

    def __init__(self, destination: str, address: str, queue: str | None, routing_type: str | None) -> None:
        self.destination = destination
        self.address = address
        self.queue = queue
        self.routing_type = routing_type
        self.target = destination
        """What decides where the message goes, as one text: the destination, and its type where a header names it."""
        self.priority = 4
        self.persistent = False
        self.expires_ms = 0
        self.due_ms = 0
        self.due_delay_ms = 0
        self.recurrence: Recurrence | None = None
        self.duplicate_id: str | None = None
        self.block = b""
        """The deciding headers that consumers see, in canonical form."""
        self.simple = True
        """Nothing special: no expiration, no schedule, no duplicate id, no temporary names."""
        self.plain = True
        """Simple and transient."""


class Send:
    """A SEND frame. ``quick``: no transaction and a simple shape. ``gathers``: in a transaction, with a simple shape
    and no receipt.
    """

    __slots__ = ("content_length", "gathers", "head", "quick", "receipt", "shape", "transaction")

    def __init__(
        self, head: Head, shape: Shape, content_length: int, receipt: str | None, transaction: str | None
    ) -> None:
        self.head = head
        self.shape = shape
        self.content_length = content_length
        self.receipt = receipt
        self.transaction = transaction
        self.quick = shape.simple and transaction is None
        self.gathers = shape.simple and transaction is not None and receipt is None

    @property
    def size_bytes(self) -> int:
        """What the frame takes in memory, without its body."""
        return FRAME_BYTES + 2 * self.head.size_bytes


class LargeSend(Send):
    """A SEND whose body goes to its own file."""

    __slots__ = ("upload",)

    def __init__(self, send: Send, upload: IncomingBody) -> None:
        super().__init__(send.head, send.shape, send.content_length, send.receipt, send.transaction)
        self.upload = upload
        self.quick = self.gathers = False


BodiedFrame = Frame | Send | Refused
AnyFrame = BodiedFrame | AckRun


def receipt_of(frame: BodiedFrame) -> str | None:
    """The receipt that a frame asks for."""
    return frame.headers.get("receipt") if isinstance(frame, Frame) else frame.receipt


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one connection; each is a parameter of the acceptor. Exceeding one leads to an ERROR and a clean
    close.
    """

    header_line_bytes_max: int = 16384
    headers_max: int = 512
    header_bytes_max: int = 65536
    body_bytes_max: int = 104857600
    unsent_bytes_max: int = 67108864
    subscriptions_max: int = 1024
    temporary_max: int = 1024
    transactions_max: int = 256
    transaction_bytes_max: int = 104857600
    selectors: SelectorLimits = CLIENT_LIMITS
    transaction_operations_max: int = 10_000
    transaction_places_max: int = 250_000
    large_body_bytes_min: int = -1
    """Bodies of this size or more go to a file of their own; -1: never."""
    header_bytes_param: str = "maxHeaderBytes"
    """The parameter that sets the largest header block."""

    def for_connect(self, acceptor: AcceptorConfig) -> Limits:
        """The limits of the first frame, which strangers send."""
        connect_bytes_max = acceptor.int_param("maxConnectBytes")
        if self.header_bytes_max <= connect_bytes_max:
            return self
        return replace(self, header_bytes_max=connect_bytes_max, header_bytes_param="maxConnectBytes")

    @property
    def allow_any_ack(self) -> bool:
        """Do the limits allow every ACK of an ``AckRun``?"""
        return (
            self.headers_max >= _ACK_HEADERS
            and min(self.header_line_bytes_max, self.header_bytes_max) >= _ACK_BYTES_MAX
        )

    @staticmethod
    def of(acceptor: AcceptorConfig) -> Limits:
        """The limits that an acceptor's parameters set."""
        return Limits(
            header_line_bytes_max=acceptor.int_param("maxHeaderLineBytes"),
            headers_max=acceptor.int_param("maxHeaders"),
            header_bytes_max=acceptor.int_param("maxHeaderBytes"),
            body_bytes_max=acceptor.int_param("maxBodyBytes"),
            unsent_bytes_max=acceptor.int_param("maxUnsentBytes"),
            subscriptions_max=acceptor.int_param("maxSubscriptions"),
            temporary_max=acceptor.int_param("maxTemporaryDestinations"),
            transactions_max=acceptor.int_param("maxTransactions"),
            transaction_bytes_max=acceptor.int_param("maxTransactionBytes"),
            selectors=SelectorLimits(acceptor.int_param("maxSelectorBytes"), acceptor.int_param("maxSelectorTerms")),
            transaction_operations_max=acceptor.int_param("maxTransactionOperations"),
            transaction_places_max=acceptor.int_param("maxTransactionPlaces"),
            large_body_bytes_min=acceptor.int_param("stompMinLargeMessageSize"),
        )
