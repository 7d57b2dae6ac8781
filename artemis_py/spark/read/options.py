"""The options of ``spark.read`` and ``spark.readStream``: texts from the user, checked before anything is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote, urlsplit

from artemis_py.client.endpoint import Endpoint
from artemis_py.client.http_connection import is_http_url
from artemis_py.errors import PipelineError, SelectorError
from artemis_py.security.client_login import ClientLogin
from artemis_py.security.client_tls import ClientTls
from artemis_py.selector import compile_selector
from artemis_py.spark import shared_options as shared
from artemis_py.spark.log.http import urls_of
from artemis_py.spark.tables.schema import TABLES

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_MEANINGS: Final = {
    "journal": "comma-separated directories of one broker's log; name=directory for several brokers; globs",
    "path": "the same as journal, for load(path)",
    "broker": "name for the broker whose directories are read",
    "url": "comma-separated HTTP acceptors of running brokers: http://host:8161; of one with a stand-by "
    "http://host:8161|http://other:8161",
    "archive": "a directory, or a URL such as s3://bucket/lake, with what artemis-py pipeline archive made",
    "queue": "a queue, to consume it: its name, or address::queue",
    "stompUrl": "STOMP acceptors of the same broker, tried in turn: tcp://host:61613; stomps://host:61617 with TLS",
    "selector": "a condition on the messages of the queue, as in SUBSCRIBE",
    **shared.MEANINGS,
    "table": ", ".join(TABLES),
    "columns": "comma-separated columns",
    "includeBody": "true or false",
    "includeHeaders": "true or false",
    "subscribe": "comma-separated addresses",
    "subscribePattern": "address with the wildcards * (one word) and # (any words)",
    "startingOffsets": 'earliest, latest or {"broker": lsn}',
    "endingOffsets": 'latest or {"broker": lsn}',
    "startingTimestamp": 'epoch milliseconds, or {"address": epoch milliseconds}',
    "endingTimestamp": 'epoch milliseconds, or {"address": epoch milliseconds}',
    "asOf": "a time: epoch milliseconds or ISO 8601",
    "maxOffsetsPerTrigger": "a number of offsets",
    "maxMessagesPerTrigger": "a number of messages",
    "maxBytesPerTrigger": "a number of bytes of log",
    "minOffsetsPerTrigger": "a number of offsets",
    "minMessagesPerTrigger": "a number of messages",
    "maxTriggerDelay": "a span of time: 10 seconds, 1 minute, 2 hours",
    "failOnDataLoss": "true or false",
    "cursor": "a name for this query at the brokers",
    "cursorTtlSeconds": "seconds",
    "interval": "a span of time: 10 seconds, 1 minute, 2 hours",
    "skipUnavailableBrokers": "true or false",
    "keepRemovedBrokers": "true or false",
    "brokerTimeoutSeconds": "how long to wait for a broker that does not answer",
    "rowsPerBatch": "a number of rows",
    "partitionBytes": "a number of bytes of log",
    "minPartitions": "a number of tasks",
    "publishId": "an option of the sink",
}
_NAMES: Final = {name.lower(): name for name in _MEANINGS}
_KAFKA_S: Final = {
    "kafka.bootstrap.servers": "url names the broker: http://host:8161",
    "kafka.group.id": "the broker knows a query by its cursor",
    "groupidprefix": "the broker knows a query by its cursor",
    "assign": "there are no partitions to assign: subscribe or subscribePattern choose addresses",
    "startingoffsetsbytimestamp": 'use startingTimestamp, for all addresses or as {"address": milliseconds}',
    "endingoffsetsbytimestamp": 'use endingTimestamp, for all addresses or as {"address": milliseconds}',
    "maxrecordsperpartition": "partitionBytes sets how much of the log a task reads",
}
"""Options of Spark's Kafka source that have other names here or are unnecessary."""
_SPARK_S_OWN: Final = frozenset({"serialization.format"})
"""Options that catalogs add to a table."""
_BOOLEANS: Final = {"true": True, "false": False}
_UNITS_MS: Final = {
    "millisecond": 1, "ms": 1, "second": 1000, "s": 1000, "minute": 60_000, "min": 60_000, "m": 60_000,
    "hour": 3_600_000, "h": 3_600_000, "day": 86_400_000, "d": 86_400_000,
}  # fmt: skip
_SPAN: Final = re.compile(r"\s*(\d+)\s*([a-z]+)\s*", re.ASCII)
_STREAMS_ALONE: Final = (
    "maxOffsetsPerTrigger", "maxMessagesPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger",
    "minMessagesPerTrigger", "maxTriggerDelay", "cursor", "keepRemovedBrokers",
)  # fmt: skip
_FOLDED: Final = frozenset({"queues", "pages", "metrics", "addresses", "queue-spans", "page-spans"})

Offsets = str | Mapping[str, int]
"""The start or end: ``earliest``, ``latest``, or an lsn for each broker."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a query. Times are epoch milliseconds, spans are milliseconds; None: not given."""

    journal: str | None
    urls: tuple[str, ...]
    """Of each broker, and joined to it those of its stand-bys."""
    broker: str | None
    login: ClientLogin
    tls: ClientTls | None
    table: str
    columns: tuple[str, ...]
    include_body: bool
    addresses: tuple[str, ...]
    pattern: str | None
    starting: Offsets
    ending: Offsets
    starting_ms: int | None
    starting_since: Mapping[str, int] | None
    """A start time per address; None: ``starting_ms`` is for all. Other addresses are read from the beginning."""
    ending_ms: int | None
    ending_until: Mapping[str, int] | None
    """An end time per address; other addresses are read to the end."""
    as_of_ms: int | None
    offsets_max: int | None
    messages_max: int | None
    bytes_max: int | None
    offsets_min: int | None
    messages_min: int | None
    delay_max_ms: int
    """How long a batch waits at most for ``offsets_min`` or ``messages_min``."""
    skips_unavailable: bool
    keeps_removed: bool
    fails_on_loss: bool
    cursor: str | None
    cursor_ttl_s: int
    interval_ms: int
    wait_s: int
    rows_max: int
    partition_bytes: int
    partitions_min: int | None
    """At least so many tasks read a batch."""
    queue: QueueOptions | None = None
    """The queue to consume; None: the log is read."""
    archive: str | None = None
    """The archive to read instead of a log."""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What deltalake needs to know of the archive's object store."""

    @property
    def subscribes(self) -> bool:
        """Does the query select addresses?"""
        return bool(self.addresses) or self.pattern is not None


def read_options(given: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """Parse the user's options. Raises PipelineError with the option, its value and the allowed values."""
    texts = _known(given)
    table = _choice(texts, "table", tuple(TABLES), "messages")
    archive = _archive(texts, table, streaming=streaming)
    queue = _queue(texts, streaming=streaming)
    journal, urls = (None, ()) if archive else _sources(texts)
    starting, starting_ms, starting_since = _start(texts, streaming=streaming)
    ending_ms, ending_until = _times(texts, "endingTimestamp", max)
    options = ReadOptions(
        journal=journal,
        urls=urls,
        broker=texts.get("broker"),
        login=shared.login_of(texts) if urls else ClientLogin(),
        tls=shared.tls_options(texts, is_used=_uses_tls(urls, queue)),
        table=table,
        columns=_columns(texts, table),
        include_body=_boolean(texts, "includeBody", default=True),
        addresses=_listed(texts.get("subscribe", "")),
        pattern=texts.get("subscribePattern"),
        starting=starting,
        ending=_offsets(texts, "endingOffsets", LATEST),
        starting_ms=starting_ms,
        starting_since=starting_since,
        ending_ms=ending_ms,
        ending_until=ending_until,
        as_of_ms=_time(texts, "asOf"),
        offsets_max=_positive(texts, "maxOffsetsPerTrigger"),
        messages_max=_positive(texts, "maxMessagesPerTrigger"),
        bytes_max=_positive(texts, "maxBytesPerTrigger"),
        offsets_min=_positive(texts, "minOffsetsPerTrigger"),
        messages_min=_positive(texts, "minMessagesPerTrigger"),
        delay_max_ms=_span(texts, "maxTriggerDelay", "15 minutes"),
        skips_unavailable=_boolean(texts, "skipUnavailableBrokers", default=False),
        keeps_removed=_boolean(texts, "keepRemovedBrokers", default=False),
        fails_on_loss=_boolean(texts, "failOnDataLoss", default=True),
        cursor=texts.get("cursor"),
        cursor_ttl_s=_positive(texts, "cursorTtlSeconds") or 86_400,
        interval_ms=_span(texts, "interval", "1 minute"),
        wait_s=_positive(texts, "brokerTimeoutSeconds") or 60,
        rows_max=_positive(texts, "rowsPerBatch") or 50_000,
        partition_bytes=_positive(texts, "partitionBytes") or 32 << 20,
        partitions_min=_positive(texts, "minPartitions"),
        queue=queue,
        archive=archive,
        storage=shared.storage_of(given),
    )
    _check_together(options, texts, streaming=streaming)
    return options


def _queue(texts: Mapping[str, str], *, streaming: bool) -> QueueOptions | None:
    if "queue" in texts and not streaming:
        raise PipelineError(
            "option queue is for spark.readStream, because a batch never says that its rows are safe, so nothing could "
            "be removed. trigger(availableNow=True) takes what is on the queue and ends; to look at messages without "
            "removing them, leave out queue and subscribe to the address"
        )
    return queue_options(texts)


def _uses_tls(urls: Iterable[str], queue: QueueOptions | None) -> bool:
    has_secure = queue is not None and any(one.has_tls for one in queue.endpoints)
    return has_secure or any(one.lower().startswith("https:") for url in urls for one in urls_of(url))


def shown_columns(given: Mapping[str, str]) -> tuple[str, list[str]]:
    """The table and its columns. Raises PipelineError for unknown options and values."""
    texts = _known(given)
    table = _choice(texts, "table", tuple(TABLES), "messages")
    return table, list(_columns(texts, table))


def _known(given: Mapping[str, str]) -> dict[str, str]:
    """The options under the names as they are documented. Spark gives their names in lower case."""
    texts: dict[str, str] = {}
    for name, text in given.items():
        known = _NAMES.get(name.lower())
        if name.lower() in _SPARK_S_OWN or name.lower().startswith(shared.STORAGE):
            continue
        if known is None:
            meant = _KAFKA_S.get(name.lower()) or shared.hint(name, _MEANINGS)
            raise PipelineError(f"option {name} is unknown: {meant}")
        texts[known] = str(text) if known in shared.SECRETS else str(text).strip()
    return texts


def _sources(texts: Mapping[str, str]) -> tuple[str | None, tuple[str, ...]]:
    journal = texts.get("journal") or _local(texts.get("path", "")) or None
    shared.check_no_user(texts.get("url", ""))
    urls = _listed(texts.get("url", ""))
    if (journal is None) == (not urls):
        said = "both are given" if urls else "none is given"
        raise PipelineError(f"name the log with option journal (a directory) or url (a broker), or archive; {said}")
    for url in urls:
        if not all(map(is_http_url, urls_of(url))):
            raise _refused(texts, "url")
    return journal, urls


_NOT_WITH_ARCHIVE: Final = frozenset(
    {
        "journal", "path", "url", "broker", "queue", "stompUrl", "selector", "asOf", "interval", "minPartitions",
        "failOnDataLoss", "skipUnavailableBrokers", "brokerTimeoutSeconds", *shared.MEANINGS,
    }
)  # fmt: skip
_ARCHIVED: Final = ("messages", "events", "addresses")


def _archive(texts: Mapping[str, str], table: str, *, streaming: bool) -> str | None:
    archive = texts.get("archive")
    if archive is None:
        return None
    if streaming:
        raise PipelineError(
            "option archive is for spark.read: an archive is no stream. Read it as a batch, and go on with a stream of "
            "the log (url), whose startingOffsets are the largest offset of each broker in the archive"
        )
    for name in texts:
        if name in _NOT_WITH_ARCHIVE:
            raise PipelineError(f"option {name} is for a log, and option archive names an archive; leave out one")
    if table not in _ARCHIVED:
        raise PipelineError(f"an archive has the tables {', '.join(_ARCHIVED)}; {table} needs a log: url or journal")
    if not archive:
        raise _refused(texts, "archive")
    return _local(archive)


def _local(path: str) -> str:
    """A path of this machine. A table's LOCATION comes as a URI, with the scheme ``file``."""
    return unquote(urlsplit(path).path) if path.startswith("file:") else path


def _start(texts: Mapping[str, str], *, streaming: bool) -> tuple[Offsets, int | None, Mapping[str, int] | None]:
    """The offset, the time before which nothing is wanted, and times of some addresses."""
    starting_ms, since = _times(texts, "startingTimestamp", min)
    if "startingTimestamp" not in texts:
        return _offsets(texts, "startingOffsets", LATEST if streaming else EARLIEST), None, None
    if "startingOffsets" in texts:
        raise PipelineError("startingOffsets and startingTimestamp both set the start; give one of them")
    return EARLIEST, starting_ms, since


def _times(
    texts: Mapping[str, str], name: str, bound: Callable[[Iterable[int]], int]
) -> tuple[int | None, Mapping[str, int] | None]:
    """The time beyond which nothing is wanted, and times of some addresses. Of these the outermost, where each address
    that can be wanted has one.
    """
    if not texts.get(name, "").startswith("{"):
        return _number(texts, name), None
    try:
        found = json.loads(texts[name])
    except ValueError:
        raise _refused(texts, name) from None
    if not found or not all(_is_lsn(time_ms) for time_ms in found.values()):
        raise _refused(texts, name)
    addresses = _listed(texts.get("subscribe", ""))
    is_named = bool(addresses) and "subscribePattern" not in texts
    for address in found:
        if is_named and address not in addresses:
            raise PipelineError(f"{name} names {address}, which is not in subscribe: {shared.hint(address, addresses)}")
    has_all = is_named and all(address in found for address in addresses)
    return bound(found.values()) if has_all else None, found


def _check_together(options: ReadOptions, texts: Mapping[str, str], *, streaming: bool) -> None:
    if streaming and options.table in _FOLDED:
        raise PipelineError(
            f"table {options.table} cannot be streamed, because each row summarizes the whole log. Stream table "
            "events and group it, or read the table as a batch"
        )
    for name in ("endingOffsets", "endingTimestamp", "asOf"):
        if streaming and name in texts:
            raise PipelineError(
                f"option {name} is for spark.read, because a stream has no end; use trigger(availableNow=True)"
            )
    for name in _STREAMS_ALONE:
        if not streaming and name in texts:
            raise PipelineError(f"option {name} is for spark.readStream")
    _check_limits(options, texts)
    _check_table(options, texts)
    if not streaming and options.starting == LATEST:
        raise PipelineError("startingOffsets latest is for spark.readStream; a batch would read nothing")
    if options.ending == EARLIEST:
        raise PipelineError("endingOffsets earliest would read nothing; give latest, or an lsn for each broker")
    if options.starting_ms is not None and options.ending_ms is not None and options.starting_ms > options.ending_ms:
        raise PipelineError("startingTimestamp is later than endingTimestamp")
    for address, end_ms in (options.ending_until or {}).items():
        begin_ms = (options.starting_since or {}).get(address, options.starting_ms if not options.starting_since else 0)
        if begin_ms is not None and begin_ms > end_ms:
            raise PipelineError(f"startingTimestamp of {address} is later than endingTimestamp")


def _check_limits(options: ReadOptions, texts: Mapping[str, str]) -> None:
    for kind, least, most in (
        ("Offsets", options.offsets_min, options.offsets_max),
        ("Messages", options.messages_min, options.messages_max),
    ):
        if least is not None and most is not None and least > most:
            raise PipelineError(
                f"min{kind}PerTrigger {least} is greater than max{kind}PerTrigger {most}, so no batch would ever be "
                "ready"
            )
    for name in ("maxMessagesPerTrigger", "minMessagesPerTrigger"):
        if name in texts and options.table != "messages":
            raise PipelineError(f"option {name} is for table messages; for {options.table} limit offsets instead")
    if "maxTriggerDelay" in texts and options.offsets_min is None and options.messages_min is None:
        raise PipelineError(
            "option maxTriggerDelay limits how long minOffsetsPerTrigger or minMessagesPerTrigger waits; give one of "
            "them too"
        )


def _check_table(options: ReadOptions, texts: Mapping[str, str]) -> None:
    """An option without meaning for the table is an error, because the user would expect an effect."""
    if "asOf" in texts and options.table not in ("queues", "queue-spans"):
        raise PipelineError("option asOf is for table queues; for other tables use endingTimestamp")
    if "interval" in texts and options.table != "metrics":
        raise PipelineError("option interval is for table metrics")
    for name, times_ms in (("startingTimestamp", options.starting_since), ("endingTimestamp", options.ending_until)):
        if times_ms is not None and options.table not in ("messages", "events"):
            raise PipelineError(f"{name} with addresses is for the tables messages and events; give one time")
    if options.table not in _FOLDED:
        return
    if options.partitions_min is not None:
        raise PipelineError("option minPartitions is for the tables messages and events")
    if not isinstance(options.starting, str):
        raise PipelineError(
            f"table {options.table} sums up the log from its beginning; leave out startingOffsets, and set the end "
            "with endingOffsets"
        )
    if options.starting_ms is not None and options.table != "metrics":
        raise PipelineError(
            f"table {options.table} sums up the log from its beginning; leave out startingTimestamp, and set the end "
            "with endingTimestamp"
        )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _refused(texts: Mapping[str, str], name: str) -> PipelineError:
    return PipelineError(f"option {name} is {texts[name]!r}; allowed: {_MEANINGS[name]}")


def _choice(texts: Mapping[str, str], name: str, allowed: tuple[str, ...], default: str) -> str:
    text = texts.get(name, default).lower()
    if text not in allowed:
        raise PipelineError(f"option {name} is {texts[name]!r}: {shared.hint(text, allowed)}")
    return text


def _boolean(texts: Mapping[str, str], name: str, *, default: bool) -> bool:
    if name not in texts:
        return default
    value = _BOOLEANS.get(texts[name].lower())
    if value is None:
        raise _refused(texts, name)
    return value


def _number(texts: Mapping[str, str], name: str) -> int | None:
    if name not in texts:
        return None
    if not re.fullmatch(r"\d{1,18}", texts[name], re.ASCII):
        raise _refused(texts, name)
    return int(texts[name])


def _positive(texts: Mapping[str, str], name: str) -> int | None:
    number = _number(texts, name)
    if number == 0:
        raise _refused(texts, name)
    return number


def _time(texts: Mapping[str, str], name: str) -> int | None:
    if name not in texts:
        return None
    if texts[name].isascii() and texts[name].isdigit():
        return _number(texts, name)
    try:
        moment = datetime.fromisoformat(texts[name])
    except ValueError:
        raise _refused(texts, name) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _span(texts: Mapping[str, str], name: str, default: str) -> int:
    match = _SPAN.fullmatch(texts.get(name, default).lower())
    unit = None if match is None else _UNITS_MS.get(match[2]) or _UNITS_MS.get(match[2].removesuffix("s"))
    if match is None or unit is None or not int(match[1]):
        raise _refused(texts, name)
    return int(match[1]) * unit


def _offsets(texts: Mapping[str, str], name: str, default: str) -> Offsets:
    text = texts.get(name, default)
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    try:
        lsns = json.loads(text)
    except ValueError:
        raise _refused(texts, name) from None
    if not isinstance(lsns, dict) or not lsns or not all(_is_lsn(lsn) for lsn in lsns.values()):
        raise _refused(texts, name)
    return lsns


def _is_lsn(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _columns(texts: Mapping[str, str], table: str) -> tuple[str, ...]:
    """Those asked for, or all but headers, which cost the most and are left out unless includeHeaders is true."""
    with_headers = _boolean(texts, "includeHeaders", default=False)
    every = tuple(name for name in TABLES[table] if name != "headers" or with_headers)
    if "columns" not in texts:
        return every
    asked = _listed(texts["columns"])
    for name in asked:
        if name not in TABLES[table]:
            meant = shared.hint(name, TABLES[table])
            raise PipelineError(f"option columns names {name}, which table {table} does not have: {meant}")
    if not asked or len(set(asked)) < len(asked):
        raise PipelineError(f"option columns is {texts['columns']!r}; allowed: {_MEANINGS['columns']}, each once")
    return asked


# ---- of a stream that consumes a queue -------------------------------------------------------------------------------


MESSAGES_MAX: Final = 10_000
"""How many messages are in one batch, unless ``maxMessagesPerTrigger`` says something else."""
_NOT_WITH_QUEUE: Final = {
    "journal": "the messages are acknowledged at a running broker: give url and stompUrl",
    "path": "the messages are acknowledged at a running broker: give url and stompUrl",
    "broker": "the broker at url says its name",
    "subscribe": "the queue decides which messages come; selector chooses among them",
    "subscribePattern": "the queue decides which messages come; selector chooses among them",
    "startingOffsets": "a new query begins with what is on the queue",
    "startingTimestamp": "a new query begins with what is on the queue",
    "endingOffsets": "a new query begins with what is on the queue",
    "endingTimestamp": "a new query begins with what is on the queue",
    "maxOffsetsPerTrigger": "limit a batch with maxMessagesPerTrigger or maxBytesPerTrigger",
    "minOffsetsPerTrigger": "a message waits on the queue, where others may take it, and not in the query",
    "minMessagesPerTrigger": "a message waits on the queue, where others may take it, and not in the query",
    "maxTriggerDelay": "a message waits on the queue, where others may take it, and not in the query",
    "minPartitions": "a task reads partitionBytes of log; divide the rows with repartition",
    "skipUnavailableBrokers": "a queue is on one broker",
    "keepRemovedBrokers": "a queue is on one broker",
    "cursor": "the queue itself remembers what was not processed",
    "cursorTtlSeconds": "the queue itself remembers what was not processed",
}
"""Options of the other streams that have no meaning here, and why."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The queue of a stream."""

    name: str
    endpoints: tuple[Endpoint, ...]
    selector: str | None

    @property
    def destination(self) -> str:
        """The queue by its full name, whatever prefixes the acceptor has."""
        return self.name if "::" in self.name else f"::{self.name}"


def queue_options(texts: Mapping[str, str]) -> QueueOptions | None:
    """What the options say about a queue; None: the stream reads the log. Raises PipelineError."""
    name = texts.get("queue")
    if name is None:
        for option in ("stompUrl", "selector"):
            if option in texts:
                raise PipelineError(f"option {option} is for streams that consume a queue: give option queue, too")
        return None
    if not name.rpartition("::")[2]:
        raise PipelineError(f"option queue is {name!r}; allowed: {_MEANINGS['queue']}")
    for option, reason in _NOT_WITH_QUEUE.items():
        if option in texts:
            raise PipelineError(f"option {option} has no meaning with option queue: {reason}")
    if texts.get("table", "messages").lower() != "messages":
        raise PipelineError("option table must be messages with option queue: a queue has messages")
    if "," in texts.get("url", ""):
        raise PipelineError("option url must name one broker with option queue: a queue is on one broker")
    endpoints = shared.endpoints_of(texts.get("stompUrl", ""), "stompUrl", _MEANINGS["stompUrl"])
    if not endpoints:
        raise PipelineError(f"option queue needs option stompUrl: {_MEANINGS['stompUrl']}")
    return QueueOptions(name, endpoints, _selector(texts))


def _selector(texts: Mapping[str, str]) -> str | None:
    selector = texts.get("selector")
    if selector is None:
        return None
    try:
        compile_selector(selector)
    except SelectorError as error:
        raise PipelineError(f"option selector is {selector!r}: {error}") from None
    return selector
