"""The operation that imports the messages of an export onto the queues on which they were."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final, final

from artemis_py.core.addresses.address import ANYCAST, MULTICAST
from artemis_py.core.operations.import_messages import Import, Shares
from artemis_py.core.order.priority import PRIORITIES
from artemis_py.core.queue.queue import Queue
from artemis_py.core.tasks import WAIT, Step
from artemis_py.errors import BadRequestError, BrokerError
from artemis_py.management.export_format import (
    LINE_BYTES_MAX,
    ExportedMessage,
    read_export,
    read_line,
    read_message,
    read_piece,
)
from artemis_py.management.managed import Arguments, BodyRoom, Managed, Steps
from artemis_py.management.operation import EDIT, LINES, Argument, Operation
from artemis_py.message import UNKNOWN, Head, LargeBody, encode_headers
from artemis_py.terminal_output import many

QUEUES_MAX: Final = 1_000
"""So many queues may need a message of one line: it comes to all of them in one step."""
_NOT_MESSAGES: Final = frozenset({"address", "queue", "end"})
"""Lines of an export that have no message."""
_DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
_ROUTING_TYPES: Final = frozenset({ANYCAST, MULTICAST, None})


def _import_messages(managed: Managed, arguments: Arguments) -> Steps:
    room = managed.bodies
    if room is None:
        raise BrokerError("no acceptor serves HTTP, so nothing says how large a message may be")
    lines, shares, count = _Lines(arguments["lines"]), Shares(), 0
    arrived = 0
    try:
        export = ""
        while (line := lines.next()) is not None:
            kind, value = line
            if not export:
                if kind != "export":
                    raise BadRequestError(f"{lines.place}: the first line of an export says what it is")
                export = read_export(value, lines.place)
            elif kind == "message":
                message = yield from _read(export, value, lines, room, managed.now_ms())
                while managed.broker.importing.must_wait(message):
                    yield WAIT
                arrived += managed.broker.importing.put(message, shares, managed.now_ms())
                count += 1
                yield None
            elif kind not in _NOT_MESSAGES:
                raise BadRequestError(f"{lines.place}: a line of {kind!r} has no place here")
    except BrokerError as error:
        if not count:
            raise
        raise type(error)(f"{error}; what {many(count, 'message')} before it needed was done") from None
    return {"messages": count, "came": arrived, "queues": {name: _row(managed, name, shares) for name in shares}}


def _row(managed: Managed, name: str, shares: Shares) -> dict[str, Any]:
    """What became of the messages for a queue, and what is on it now."""
    share, queue = shares[name], managed.broker.queues.get(name)
    return {
        "placed": share.placed,
        "known": share.known,
        "replaced": share.replaced,
        "transient": share.transient,
        "refused": share.refused,
        "reason": share.reason or None,
        "isFull": share.is_full,
        "messageCount": 0 if queue is None else queue.message_count,
        "givesWay": queue is not None and _gives_way(queue),
    }


def _gives_way(queue: Queue) -> bool:
    """May a message of the queue be replaced by another one that comes?"""
    overflow = queue.flow.overflow
    return overflow.is_ring or overflow.sheds or queue.contents.last_values is not None


def _read(export: str, value: Any, lines: _Lines, room: BodyRoom, now_ms: int) -> Generator[Step, None, Import]:
    """A message with its body, of which the lines behind it may have the pieces. Raises BrokerError in a step."""
    place = lines.place
    taken = read_message(value, place)
    if len(taken.queues) > QUEUES_MAX:
        raise BadRequestError(f"{place}: {len(taken.queues)} queues need this message; a line may name {QUEUES_MAX}")
    head = _head(taken, place, room.headers_bytes_max)
    size_bytes = len(taken.body) if taken.piece_bytes < 0 else taken.piece_bytes
    if size_bytes > room.bytes_max:
        raise BadRequestError(f"{place}: this body has {size_bytes} bytes, and maxBodyBytes is {room.bytes_max}")
    pieces = iter([taken.body]) if taken.piece_bytes < 0 else lines.pieces(taken.piece_bytes, place)
    body = yield from _body(pieces, size_bytes, room, durable=taken.is_persistent)
    return Import(
        f"{export}-{taken.id}", head, body, taken.sent_ms or now_ms, taken.expires_ms, taken.queues, taken.due_ms
    )  # fmt: skip


def _body(
    pieces: Iterator[bytes], size_bytes: int, room: BodyRoom, *, durable: bool
) -> Generator[Step, None, bytes | LargeBody]:
    """The body, in memory or in a file of its own, as that of a message which a client sends."""
    store = room.store
    if store is None or not 0 <= room.large_bytes_min <= size_bytes or not size_bytes:
        parts: list[bytes] = []
        for piece in pieces:
            parts.append(piece)
            yield None
        return b"".join(parts)
    if store.is_full:
        raise BrokerError("the disk is full (max-disk-usage or min-disk-free): no body can be written")
    upload = store.begin(durable=durable)
    for piece in pieces:
        upload.append(piece)
        yield None if store.may_go_on else store
    upload.end()
    if not upload.may_go_on:
        yield upload
    if upload.failure is not None:
        raise BrokerError(f"the disk has no room for a body: {upload.failure}")
    return upload.body


def _head(taken: ExportedMessage, place: str, bytes_max: int) -> Head:
    """The headers as they were. Raises BadRequestError for what no SEND could have made."""
    named: dict[str, str] = {}
    for name, text in taken.headers:
        named.setdefault(name, text)
    routing_type = named.get("destination-type")
    try:
        block = encode_headers(taken.headers or [("destination", taken.address)])
    except UnicodeEncodeError:
        raise BadRequestError(f"{place}: a header has a part of a character, which cannot be written") from None
    if b"\0" in block:
        raise BadRequestError(f"{place}: a header has a NUL")
    if len(block) > bytes_max:
        raise BadRequestError(f"{place}: the headers have {len(block)} bytes, and maxHeaderBytes is {bytes_max}")
    if not 0 <= taken.priority < PRIORITIES or routing_type not in _ROUTING_TYPES:
        raise BadRequestError(f"{place}: a priority is 0 to {PRIORITIES - 1}, a destination-type ANYCAST or MULTICAST")
    head = Head(
        block, taken.address, priority=taken.priority, persistent=taken.is_persistent, sized=taken.is_sized,
        routing_type=routing_type, duplicate_id=named.get(_DUPLICATE_ID),
    )  # fmt: skip
    head.provenance = UNKNOWN
    return head


@final
class _Lines:
    """The lines of a body that arrived in parts."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = iter(parts)
        self._waiting: list[bytes] = []
        """Lines that are whole, the next one last."""
        self._tail: list[bytes] = []
        """The beginning of a line."""
        self._number = 0

    @property
    def place(self) -> str:
        """Of the line that was read last, for errors."""
        return f"line {self._number}"

    def next(self) -> tuple[str, Any] | None:
        """What the next line is, and its value; None: there is none. Raises BadRequestError."""
        while not self._waiting:
            part = next(self._parts, None)
            if part is None:
                if not self._tail:
                    return None
                self._waiting, self._tail = [b"".join(self._tail)], []
                break
            self._take(part)
        self._number += 1
        data = self._waiting.pop()
        self._check(len(data))
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise BadRequestError(f"{self.place} is not UTF-8") from None
        return read_line(text, self.place)

    def _take(self, part: bytes) -> None:
        first, *others = part.split(b"\n")
        self._tail.append(first)
        if others:
            whole = [b"".join(self._tail), *others[:-1]]
            self._tail = [others[-1]] if others[-1] else []
            self._waiting = [line for line in reversed(whole) if line.strip()]
        else:
            self._check(sum(map(len, self._tail)))

    def _check(self, size_bytes: int) -> None:
        if size_bytes > LINE_BYTES_MAX:
            raise BadRequestError(
                f"the line behind {self.place} has more than {LINE_BYTES_MAX} bytes; send a large body in pieces"
            )

    def pieces(self, size_bytes: int, place: str) -> Iterator[bytes]:
        """The pieces of a body of this size. Raises BadRequestError if they are not so long together."""
        left = size_bytes
        while left > 0:
            line = self.next()
            if line is None or line[0] != "piece":
                raise BadRequestError(f"{place}: {left} bytes of this message's body are missing")
            data = read_piece(line[1], self.place)
            left -= len(data)
            if left < 0 or not data:
                raise BadRequestError(f"{self.place}: the pieces of this body are not as long as its message says")
            yield data


IMPORT_OPERATIONS: Final = (
    Operation(
        name="importMessages",
        right=EDIT,
        method="POST",
        path="/api/import",
        command="message import",
        sentence="Put the messages of an export on the queues on which they were, as `artemis-py data imp` does: past "
        "filters, diverts and duplicate ids, but not past limits.",
        result="messages: how many there were; came: how many are on a queue, now or from before; queues: for each,"
        " how many came now (placed) or before (known), were replaced on a ring or by last value, or refused, with the"
        " first reason; isFull; transient: persistent ones that a restart loses; messageCount; givesWay: whether others"
        " may replace them",
        arguments=(
            Argument(
                "lines", LINES, "lines of an export: the first, with its id, and messages with the pieces of bodies"
            ),
        ),
        work=_import_messages,
        no_mbean="A bean takes no lines.",
    ),
)
