"""The operation that traces a message: its life, read from the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from artemis_py.errors import BadRequestError, BrokerError
from artemis_py.management.listing import EPOCH_MS, FLAG, NUMBER, TEXT, Field, Kind, ListQuery, Selection, Value
from artemis_py.management.managed import Arguments, Managed, Steps
from artemis_py.management.operation import VIEW, Argument, Operation


def _at(name: str) -> Callable[[Mapping[str, Any]], Value]:
    return lambda moment: moment[name]


def _field(name: str, type: str, sentence: str, unit: str = "") -> Field[Mapping[str, Any]]:
    return Field(name, type, sentence, _at(name), unit, is_brief=name not in ("lsn", "original"))


MOMENTS: Final[Kind[Mapping[str, Any]]] = Kind(
    "moment",
    "moments",
    [
        _field("time", NUMBER, "When it happened; 0: it is so now", EPOCH_MS),
        _field("messageID", NUMBER, "The number of the message, or of its copy"),
        _field("what", TEXT, "What happened, in a word (docs/why.md)"),
        _field("queue", TEXT, "On which queue; empty: on none"),
        _field("who", TEXT, "The client that did it; empty: none did, or nobody knows"),
        _field("text", TEXT, "What happened, in words"),
        _field("original", NUMBER, "Of a copy: the number of the message that it was made of; 0: it is none"),
        _field("lsn", NUMBER, "Where the log has it"),
    ],
)


_SECONDS: Final = 2
_SECONDS_MAX: Final = 10


def _nothing(_: Any) -> int:
    return 0


_ALSO: Final = (
    Field[Any]("isWhole", FLAG, "Was the log read to its end? Else ask again, with after=readTo", _nothing),
    Field[Any]("readTo", NUMBER, "The lsn up to which it was read", _nothing),
    Field[Any]("logBegan", NUMBER, "When the log began; it knows nothing of before", _nothing, EPOCH_MS),
    Field[Any]("readBytes", NUMBER, "How much of the log was read", _nothing, "bytes"),
    Field[Any]("lostParts", NUMBER, "How many parts of the log were damaged, or gone before they were read", _nothing),
    Field[Any]("leftOut", NUMBER, "How many copies were not followed, because there are too many", _nothing),
)


def _trace(managed: Managed, arguments: Arguments) -> Steps:
    seconds, stored = arguments["seconds"], managed.stored
    if not 1 <= seconds <= _SECONDS_MAX:
        raise BadRequestError(f"seconds must be 1 to {_SECONDS_MAX}, not {seconds}")
    if stored is None:
        raise BrokerError("there is no log to read: set persistence-enabled to true, and a journal-retention-directory")
    coming = stored.tell_life(arguments["message"], arguments["after"], seconds)
    yield coming
    life = coming.result()
    moments = life.moments
    extra = {
        "isWhole": life.is_whole,
        "readTo": life.read_lsn,
        "logBegan": life.log_began_ms,
        "readBytes": life.read_bytes,
        "lostParts": life.lost,
        "leftOut": life.left_out,
    }
    return Selection(MOMENTS, ListQuery(size=max(len(moments), 1)), len(moments), moments, extra)


TRACE_OPERATIONS: Final = (
    Operation(
        name="traceMessage",
        right=VIEW,
        method="GET",
        path="/api/messages/{message}/life",
        command="trace",
        sentence="The life of a message and of its copies from the log, in order: who sent it, who had it, what became"
        " of it.",
        result="count; data: the moments; isWhole: whether the log was read to its end; readTo: where to continue",
        arguments=(
            Argument("message", NUMBER, "the number of the message: its message-id, or what is behind its dash"),
            Argument("after", NUMBER, "go on after this lsn: readTo of an answer that was not whole; 0: begin", 0),
            Argument("seconds", NUMBER, f"for how long to read at most, up to {_SECONDS_MAX}", _SECONDS),
        ),
        lists=MOMENTS,
        also=_ALSO,
        work=_trace,
        mbean=(
            "String traceMessage(long messageID=message)",
            "String traceMessage(long messageID=message, long after, int seconds)",
        ),
    ),
)
