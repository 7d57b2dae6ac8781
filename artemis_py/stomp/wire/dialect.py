"""How one acceptor reads destinations, and frames of one STOMP version, and its cache of frames already seen.

There are three classes of SEND headers. Hop headers (receipt, transaction, content-length, and names that only the
broker may write) belong to this frame alone and are removed. Deciding headers (destination, priority, …) form a
``Shape``, cached by their bytes. All others pass through unchanged. So a producer with a new correlation-id in every
message still costs little, and one that repeats its headers costs a dictionary look-up.
"""

from __future__ import annotations

from typing import Final

from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.core.dead_letters import RETRIED_HEADER
from artemis_py.core.publish.copies import HOPS_HEADER
from artemis_py.core.recurrence import NAMES as RECURRENCE_NAMES
from artemis_py.core.recurrence import SCHEDULED, RecurrenceError, recurrence_of
from artemis_py.message import Head, encode_headers, escape_header
from artemis_py.stomp.foreign_headers import KNOWN, ForeignHeaders
from artemis_py.stomp.wire.frames import COMMANDS, Frame, FrameError, Limits, Refused, Send, Shape
from artemis_py.terminal_output import escaped
from artemis_py.units import DATE_MAX_MS, parse_long

# ---- destinations ----------------------------------------------------------------------------------------------------


class Prefixes:
    """An acceptor's ``anycastPrefix`` and ``multicastPrefix``: a prefix is removed and decides the routing type."""

    __slots__ = ("_prefixes",)

    def __init__(self, anycast: tuple[str, ...], multicast: tuple[str, ...]) -> None:
        pairs = [(prefix, ANYCAST) for prefix in anycast] + [(prefix, MULTICAST) for prefix in multicast]
        self._prefixes = sorted(pairs, key=lambda pair: -len(pair[0]))

    @staticmethod
    def of(acceptor: AcceptorConfig) -> Prefixes:
        """The prefixes that an acceptor's parameters set."""
        return Prefixes(acceptor.list_param("anycastPrefix"), acceptor.list_param("multicastPrefix"))

    def split(self, destination: str) -> tuple[str, str | None]:
        """The destination without its prefix, and the prefix's routing type (None: no prefix)."""
        for prefix, routing_type in self._prefixes:
            if destination.startswith(prefix):
                return destination[len(prefix) :], routing_type
        return destination, None


def split_qualified(name: str) -> tuple[str, str | None]:
    """Split ``address::queue``; a name without ``::`` is an address."""
    address, colons, queue = name.partition("::")
    return (address, queue) if colons else (name, None)


# ---- frames ----------------------------------------------------------------------------------------------------------

MEMO_ENTRIES_MAX: Final = 4096
MEMO_BLOCK_BYTES_MAX: Final = 1024
MEMO_BYTES_MAX: Final = 1 << 20
"""Bytes of header blocks cached in one table; their meaning takes about three times as much."""

_RECEIPT: Final = b"\nreceipt:"
_UNAMBIGUOUS: Final = bytes(code for code in range(ord("!"), ord("~") + 1) if chr(code) not in "\\:")
"""The characters of header values that are read alike in every version and written as they were read."""
DELIVERY_COUNT: Final = "JMSXDeliveryCount"
_CARRIED: Final = frozenset({"receipt", "transaction", "content-length"})
_FORGED: Final = frozenset(
    {
        "message-id", "subscription", "ack", "redelivered", "timestamp", "delivery-count", "amqMessageId",
        "ingress-timestamp", DELIVERY_COUNT, HOPS_HEADER, RETRIED_HEADER, SCHEDULED,
    }
)  # fmt: skip
_DECIDING: Final = frozenset(
    {
        "destination", "destination-type", "priority", "persistent", "expires", "AMQ_SCHEDULED_TIME",
        "AMQ_SCHEDULED_DELAY", *RECURRENCE_NAMES, "_AMQ_DUPL_ID", "JMSXGroupID", "_AMQ_GROUP_ID", "reply-to",
    }
)  # fmt: skip
_CARRIED_BYTES: Final = frozenset(name.encode() for name in _CARRIED)
_DECIDING_BYTES: Final = frozenset(name.encode() for name in _DECIDING)
_FORGED_BYTES: Final = frozenset(name.encode() for name in _FORGED)
_OWN: Final = _CARRIED | _FORGED | _DECIDING
"""No header with one of these names passes through."""
BLANKS: Final = (
    "".join(map(chr, [*range(ord(" ") + 1), *range(0x2000, 0x2010)]))
    + "\x7f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Characters that readers strip from names or do not see."""
_PASSING_NAMES_MAX: Final = 1024
_PASSING_NAME_BYTES_MAX: Final = 64


class Dialect:
    """One acceptor's reader of one version. Its cache is bounded and shared by the acceptor's connections. What is sent
    to ``asked_address`` is a request, each by itself.
    """

    def __init__(
        self,
        version: str,
        acceptor: AcceptorConfig,
        limits: Limits | None = None,
        asked_address: str = "",
        foreign: ForeignHeaders | None = None,
    ) -> None:
        self.version = version
        self._foreign = foreign
        self._asked_address = asked_address
        self.limits = limits or Limits.of(acceptor)
        self.prefixes = Prefixes.of(acceptor)
        self.default_persistent = acceptor.bool_param("defaultPersistent")
        self._trims = version == "1.0"
        self._line_bytes_max = self.limits.header_line_bytes_max
        self.memo: dict[bytes, Send] = {}
        self._memo_bytes = 0
        self._shape_bytes = 0
        self._seen: set[int] = set()
        """Hashes of blocks seen once: a block that never repeats is not worth caching."""
        self._shapes: dict[tuple[bytes, ...], Shape] = {}
        self._passing: set[bytes] = set()
        """Names seen so far that pass through."""

    def read(self, block: bytes) -> Frame | Send | Refused:
        """The frame of a header block. Raises FrameError if nothing after it can be read."""
        if block.startswith(b"SEND\n") and b"\\" not in block and b"\r" not in block and block.isascii():
            send = self._read_plain_send(block)
            if send is not None:
                return send
        return self._read_any(block)

    def read_with_receipt(self, block: bytes, start: int) -> Frame | Send | Refused:
        """As ``read``, for a block with a receipt line after the line feed at ``start``. A client that asks for many
        receipts gives each its own id; without that line its blocks are often alike.
        """
        end = block.find(b"\n", start + 1)
        value = block[start + len(_RECEIPT) :] if end < 0 else block[start + len(_RECEIPT) : end]
        others = block[:start] if end < 0 else block[:start] + block[end:]
        unambiguous = value.isalnum() or not value.translate(None, _UNAMBIGUOUS)
        if not unambiguous or len(block) > self._line_bytes_max:
            return self.read(block)
        known = self.memo.get(others)
        if known is not None and block.count(b"\n") <= self.limits.headers_max:
            return Send(known.head, known.shape, known.content_length, value.decode(), known.transaction)
        frame = self.read(block)
        if isinstance(frame, Send) and frame.transaction is None:
            self.remember(others, Send(frame.head, frame.shape, frame.content_length, None, None))
        return frame

    def remember(self, block: bytes, send: Send) -> None:
        """Cache a frame without a receipt for the next one with the same bytes, if these bytes were seen before."""
        number = hash(block)
        if number not in self._seen:
            if len(self._seen) >= MEMO_ENTRIES_MAX:
                self._seen.clear()
            self._seen.add(number)
            return
        if len(block) > MEMO_BLOCK_BYTES_MAX:
            return
        self._memo_bytes += len(block)
        if len(self.memo) >= MEMO_ENTRIES_MAX or self._memo_bytes > MEMO_BYTES_MAX:
            self.memo.clear()
            self._memo_bytes = len(block)
        self.memo[block] = send

    # ---- SEND, the quick way: no escapes, one colon a line ---------------------------------------

    def _read_plain_send(self, block: bytes) -> Send | None:
        """None if the block needs the slow path (which also words the error)."""
        lines = block.split(b"\n")
        count = len(lines) - 1
        if block.count(b":") != count or count > self.limits.headers_max:
            return None
        if len(block) > self._line_bytes_max or (self._trims and b": " in block):
            return None
        del lines[0]
        deciding: list[bytes] = []
        passing: list[bytes] = []
        carried: dict[bytes, str] | None = None
        known = self._passing
        for line in lines:
            name = line[: line.find(b":")]
            if name in known:
                passing.append(line)
            elif name in _DECIDING_BYTES:
                deciding.append(line)
            elif name in _CARRIED_BYTES:
                if carried is None:
                    carried = {}
                carried.setdefault(name, line[len(name) + 1 :].decode())
            elif name not in _FORGED_BYTES:
                if not self._passes(name):
                    return None
                passing.append(line)
        key = tuple(deciding)
        shape = self._shapes.get(key)
        if shape is None:
            try:
                shape = self._shape_of_lines(key)
            except FrameError:
                return None
        text = b"\n".join(passing)
        if carried is None:
            return Send(_head(shape, text, False), shape, -1, None, None)
        return self._send_with_hop_headers(shape, text, carried)

    def _passes(self, name: bytes) -> bool:
        """Is this the name of a header that only passes through? Such names are cached."""
        if not name or not passes_through(name.decode()):
            return False
        if self._foreign is not None and name in self._foreign.in_send:
            self._foreign.find(name.decode())
        if len(name) <= _PASSING_NAME_BYTES_MAX:
            if len(self._passing) >= _PASSING_NAMES_MAX:
                self._passing.clear()
            self._passing.add(name)
        return True

    def _send_with_hop_headers(self, shape: Shape, text: bytes, carried: dict[bytes, str]) -> Send:
        length = carried.get(b"content-length")
        receipt = carried.get(b"receipt")
        try:
            content_length = -1 if length is None else parse_content_length(length, self.limits)
        except FrameError as error:
            raise FrameError(str(error), receipt, too_large=error.too_large) from None
        head = _head(shape, text, length is not None)
        return Send(head, shape, content_length, receipt, carried.get(b"transaction"))

    def _shape_of_lines(self, lines: tuple[bytes, ...]) -> Shape:
        headers = [tuple(line.decode().split(":", 1)) for line in lines]
        shape = self.shape(first_of_each([(name, value) for name, value in headers]))
        size_bytes = sum(map(len, lines))
        if size_bytes <= MEMO_BLOCK_BYTES_MAX:
            self._shape_bytes += size_bytes
            if len(self._shapes) >= MEMO_ENTRIES_MAX or self._shape_bytes > MEMO_BYTES_MAX:
                self._shapes.clear()
                self._shape_bytes = size_bytes
            self._shapes[lines] = shape
        return shape

    # ---- any frame, the careful way --------------------------------------------------------------

    def _read_any(self, block: bytes) -> Frame | Send | Refused:
        try:
            command, headers = decode_block(block, self.version, self.limits)
        except FrameError as error:
            receipt = receipt_in(block, self.version)
            if self.version == "1.0":
                return Refused(str(error), receipt, -1)
            raise FrameError(str(error), receipt, too_large=error.too_large) from None
        chosen = first_of_each(headers)
        receipt = chosen.get("receipt")
        length = chosen.get("content-length")
        try:
            content_length = -1 if length is None else parse_content_length(length, self.limits)
        except FrameError as error:
            raise FrameError(str(error), receipt, too_large=error.too_large) from None
        if command != "SEND":
            return Frame(command, chosen, content_length)
        try:
            shape = self.shape(chosen)
        except FrameError as error:
            return Refused(str(error), receipt, content_length, incomplete=not chosen.get("destination"))
        passing = [(name, value) for name, value in headers if passes_through(name)]
        if self._foreign is not None:
            for name in KNOWN["SEND"].keys() & chosen.keys():
                self._foreign.find(name)
        text = encode_headers(passing)[:-2]
        return Send(_head(shape, text, length is not None), shape, content_length, receipt, chosen.get("transaction"))

    def shape(self, headers: dict[str, str]) -> Shape:
        """The meaning of a SEND's deciding headers. Raises FrameError for an invalid value."""
        destination = headers.get("destination")
        if not destination:
            raise FrameError("SEND needs a destination header")
        name, routing_type = self.prefixes.split(destination)
        target = destination
        if routing_type is None:
            routing_type = routing_type_of(headers.get("destination-type"), "destination-type")
            if routing_type is not None:
                target = f"{destination}\0{routing_type}"
        address, queue = split_qualified(name)
        shape = Shape(destination, address, queue, routing_type)
        shape.target = target
        shape.priority = _priority(headers.get("priority"))
        shape.persistent = self._persistent(headers.get("persistent"))
        shape.expires_ms = _expiry(headers.get("expires"))
        shape.due_ms = _milliseconds(headers, "AMQ_SCHEDULED_TIME")
        shape.due_delay_ms = _milliseconds(headers, "AMQ_SCHEDULED_DELAY")
        if not headers.keys().isdisjoint(RECURRENCE_NAMES):
            try:
                shape.recurrence = recurrence_of(headers)
            except RecurrenceError as error:
                raise FrameError(str(error)) from None
        shape.duplicate_id = headers.get("_AMQ_DUPL_ID")
        shape.simple = not (
            shape.expires_ms
            or shape.due_ms
            or shape.due_delay_ms
            or shape.recurrence is not None
            or shape.duplicate_id is not None
            or "reply-to" in headers
            or destination.startswith("/temp-")
            or address == self._asked_address
        )
        shape.plain = shape.simple and not shape.persistent
        shape.block = _canonical(shape, headers)
        return shape

    def _persistent(self, text: str | None) -> bool:
        if text is None:
            return self.default_persistent
        return text.strip().lower() == "true"


def passes_through(name: str) -> bool:
    """Does a header go to consumers as the sender wrote it? Not if the broker uses its name, nor if clients that strip
    names would take it for one of the broker's.
    """
    return name not in _OWN and name.strip(BLANKS) not in _OWN


def _head(shape: Shape, passing: bytes, sized: bool) -> Head:
    block = b"%b%b\n\n" % (shape.block, passing) if passing else shape.block + b"\n"
    return Head(block, shape.address, shape.priority, shape.persistent, sized, shape.routing_type, shape.duplicate_id)


def _canonical(shape: Shape, headers: dict[str, str]) -> bytes:
    """The deciding headers as consumers see them."""
    lines = [
        f"destination:{escape_header(shape.destination)}",
        f"priority:{shape.priority}",
        f"persistent:{'true' if shape.persistent else 'false'}",
    ]
    if shape.routing_type is not None:
        lines.append(f"destination-type:{shape.routing_type}")
    for name in (
        "JMSXGroupID",
        "_AMQ_GROUP_ID",
        "_AMQ_DUPL_ID",
        "AMQ_SCHEDULED_TIME",
        "AMQ_SCHEDULED_DELAY",
        *RECURRENCE_NAMES,
        "reply-to",
    ):
        if name in headers:
            lines.append(f"{name}:{escape_header(headers[name])}")
    if "JMSXGroupID" in headers and "_AMQ_GROUP_ID" not in headers:
        lines.append(f"_AMQ_GROUP_ID:{escape_header(headers['JMSXGroupID'])}")
    return ("\n".join(lines) + "\n").encode()


def routing_type_of(text: str | None, header: str) -> str | None:
    """The routing type in a header. Raises FrameError for anything but ANYCAST and MULTICAST."""
    if text is None or text in (ANYCAST, MULTICAST):
        return text
    raise FrameError(f"{header} must be ANYCAST or MULTICAST, not {text[:40]!r}")


def _priority(text: str | None) -> int:
    if text is None:
        return 4
    value = integer(text, "priority")
    if not 0 <= value <= 9:
        raise FrameError(f"priority must be 0 to 9, not {value}")
    return value


def _expiry(text: str | None) -> int:
    if text is None:
        return 0
    value = integer(text, "expires")
    if value < 0:
        raise FrameError(f"expires must be a time in epoch milliseconds, or 0 for never, not {value}")
    return min(value, DATE_MAX_MS)


def _milliseconds(headers: dict[str, str], name: str) -> int:
    text = headers.get(name)
    return 0 if text is None else min(max(integer(text, name), 0), DATE_MAX_MS)


def integer(text: str, name: str) -> int:
    """The number in a header; blanks around it do not matter. Raises FrameError."""
    digits = text.strip(" ")
    if len(digits.lstrip("+-")) > 18 and digits.lstrip("+-").isdecimal():
        raise FrameError(f"{name} must be a number of at most 18 digits, not {text[:40]!r}")
    try:
        return parse_long(digits)
    except ValueError:
        raise FrameError(f"{name} is not a number: {text[:40]!r}") from None


# ---- header lines ----------------------------------------------------------------------------------------------------
#
# STOMP 1.0 has no escapes, and blanks after the colon are dropped. 1.1 has ``\n``, ``\c`` and ``\\``; 1.2 adds ``\r``.
# CONNECT frames are never unescaped. A carriage return before the line feed belongs to the line end in every version
# (only 1.2 says so, but people at a terminal use the others, too); elsewhere in a line, 1.2 forbids it.


_ESCAPES: Final = {"1.1": (("\\n", "\n"), ("\\c", ":")), "1.2": (("\\n", "\n"), ("\\c", ":"), ("\\r", "\r"))}
"""Besides that of the backslash itself. 1.0 has none."""


def decode_block(block: bytes, version: str, limits: Limits) -> tuple[str, list[tuple[str, str]]]:
    """Command and headers of a header block (command line and header lines, without the empty line). Raises
    FrameError.
    """
    if len(block) > limits.header_line_bytes_max:
        longest = max(map(len, block.split(b"\n")))
        if longest > limits.header_line_bytes_max:
            raise FrameError(
                f"Header line too long: {longest} bytes, at most {limits.header_line_bytes_max} are allowed",
                too_large=True,
            )
    try:
        text = block.decode()
    except UnicodeDecodeError as error:
        raise FrameError(f"Headers are not UTF-8: {error.reason} at byte {error.start}") from None
    lines = text.split("\n")
    if len(lines) - 1 > limits.headers_max:
        reason = f"Too many headers: {len(lines) - 1}, at most {limits.headers_max} are allowed"
        raise FrameError(reason, too_large=True)
    command = lines[0].removesuffix("\r")
    if command not in COMMANDS:
        raise FrameError(_unknown_command(command))
    plain = command in ("CONNECT", "STOMP")
    headers = [_decode_line(line.removesuffix("\r"), version, plain) for line in lines[1:]]
    return command, headers


def _unknown_command(command: str) -> str:
    shown = command[:40].replace("\r", "\\r")
    if command.upper() in COMMANDS:
        return f"Unknown command {shown!r}: write commands in capitals"
    return f"Unknown command {shown!r}"


def _decode_line(line: str, version: str, plain: bool) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name:
        raise FrameError(f"Header line without {'a name' if colon else 'a colon'}: {line[:40]!r}")
    if "\r" in line and version == "1.2":
        raise FrameError(f"A carriage return inside the header {name[:40]!r}")
    if version == "1.0":
        return name, value.lstrip(" ")
    if plain or "\\" not in line:
        return name, value
    return _unescape(name, version), _unescape(value, version)


def receipt_in(block: bytes, version: str) -> str | None:
    """The receipt that an unreadable block asks for; None if that line is unreadable, too."""
    start = block.find(_RECEIPT)
    if start < 0:
        return None
    line = block[start + 1 :].partition(b"\n")[0].removesuffix(b"\r")
    try:
        return _decode_line(line.decode(), version, plain=False)[1]
    except (FrameError, UnicodeDecodeError):
        return None


def _unescape(text: str, version: str) -> str:
    if "\\" not in text:
        return text
    parts = text.split("\\\\")  # what is between escaped backslashes has the others only
    for place, whole in enumerate(parts):
        if "\\" not in whole:
            continue
        part = whole
        for escape, meant in _ESCAPES[version]:
            part = part.replace(escape, meant)
        if "\\" in part:
            raise _undefined(whole, version)
        parts[place] = part
    return "\\".join(parts)


def _undefined(part: str, version: str) -> FrameError:
    """The first escape in a text that this version does not define."""
    known = [escape for escape, _ in _ESCAPES[version]]
    slash = part.find("\\")
    while part[slash : slash + 2] in known:
        slash = part.find("\\", slash + 2)
    return FrameError(f"Undefined escape {escaped(part[slash : slash + 2])} in a header (STOMP {version})")


def first_of_each(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Headers by name; of repeated ones the first counts (STOMP 1.1 and 1.2, "Repeated Header Entries"; 1.0 does not
    specify it).
    """
    chosen: dict[str, str] = {}
    for name, value in headers:
        chosen.setdefault(name, value)
    return chosen


def parse_content_length(text: str, limits: Limits) -> int:
    """The value of a content-length header. Raises FrameError if it is not a number or exceeds the maximum body
    size.
    """
    if not (text.isascii() and text.isdigit()):
        raise FrameError(f"content-length is not a number: {text[:40]!r}")
    if len(text) > 18 or int(text) > limits.body_bytes_max:
        reason = f"Body too large: {text[:40]} bytes, at most {limits.body_bytes_max} are allowed"
        raise FrameError(reason, too_large=True)
    return int(text)
