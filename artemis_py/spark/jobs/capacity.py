"""Derives from the traffic the memory, page and ring sizes that would have held it, and how long a backlog takes to
drain.

Method, per queue and second: *arrivals* and *acknowledged* are counted, and the backlog is tracked record by record.
The *service rate* of a queue's consumers is the median number of acknowledgements in seconds that ended with a backlog.
If they always kept up, it is their maximum in a second, and they may be faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from artemis_py.config.wildcards import is_wildcard
from artemis_py.message import MESSAGE_OVERHEAD_BYTES
from artemis_py.spark.jobs import names
from artemis_py.spark.jobs.frames import ACCURACY, at, bucket
from artemis_py.spark.jobs.intervals import interval_of
from artemis_py.spark.jobs.result import (
    BYTES,
    COUNT,
    JOINED,
    RATE,
    ROWS_SHOWN_MAX,
    SECONDS,
    Column,
    Plot,
    Result,
    Table,
    Text,
    collected,
    lines,
)
from artemis_py.spark.jobs.sizing import MIB, Advice, Need, advise, as_xml

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, Row, SparkSession

    from artemis_py.spark.jobs.source import Source

_COLUMNS: Final = (
    "broker", "address", "queue", "messageId", "offset", "event", "timestamp", "count", "bytes",
)  # fmt: skip
_NAMED_MAX: Final = 8
"""Maximum number of queues named in a note."""
_ADDRESS: Final = ("broker", "address")
_DISPLACED: Final = "isDisplaced"
_QUEUE: Final = ("broker", "address", "queue")
_ADDRESS_SHOWN: Final = (
    Column("broker", "broker"), Column("address", "address"), Column("messages", "messages", COUNT),
    Column("meanBytes", "mean size", BYTES), Column("largestBytes", "largest", BYTES),
    Column("peakMessages", "most at once", COUNT), Column("peakBytes", "peak of memory", BYTES),
    Column("outageBytes", "after the outage", BYTES),
)  # fmt: skip
_QUEUE_SHOWN: Final = (
    Column("broker", "broker"), Column("address", "address"), Column("queue", "queue"),
    Column("arrivals", "arrivals", COUNT), Column("arrivalRate", "per s", RATE),
    Column("serviceRate", "service per s", RATE),
    Column("peakDepth", "most at once", COUNT), Column("replaced", "lost by the ring", COUNT),
    Column("ring", "ring to hold all", COUNT), Column("outageBacklog", "after the outage", COUNT),
    Column("drainS", "time to drain", SECONDS),
)  # fmt: skip


def capacity(spark: SparkSession, source: Source, *, outage_s: int = 600, memory_bytes: int = 64 * MIB) -> Result:
    """What each address and queue would have needed, including an outage of all consumers for ``outage_s``, with at
    most ``memory_bytes`` of memory per address. The text ``broker.xml`` has the advice as settings.
    """
    wanted = (names.PUBLISHED, *names.ARRIVALS, *names.ENDS)
    every = source.table(spark, "events", _COLUMNS).where(F.col("event").isin(*wanted))
    # An operator's purge tells how many went, not which.
    amount = F.when(F.col("event").isin(*names.ARRIVALS), 1).otherwise(-F.coalesce("count", F.lit(1)))
    events = every.where("queue is not null").withColumn("n", amount).withColumn(_DISPLACED, _is_displaced())
    seconds = _seconds(events, outage_s).cache()
    queues = _queues(seconds, outage_s).cache()
    addresses = _addresses(every.where("messageId is not null"), queues).cache()
    of_addresses = collected(
        "addresses", "Addresses", _ADDRESS_SHOWN, addresses.orderBy(F.desc("peakBytes"), *_ADDRESS)
    )
    of_queues = collected("queues", "Queues", _QUEUE_SHOWN, queues.orderBy(F.desc("peakDepth"), *_QUEUE))
    advices = [advise(need, memory_bytes) for need in _needs(of_addresses, of_queues)]
    texts = [Text("broker.xml", "Settings that would have held it", as_xml(advices))] if advices else []
    facts = [
        (Column("outageS", "outage", SECONDS), outage_s),
        (Column("memory", "total memory", BYTES), sum(advice.max_size_bytes for advice in advices)),
        (Column("disk", "pages after the outage", BYTES), sum(advice.disk_bytes for advice in advices)),
    ]
    busiest = [row[2] for row in of_queues.rows[:8]]
    interval_s = interval_of(source, None)
    tops = seconds.where(F.col("queue").isin(busiest)).groupBy("queue", bucket("second", interval_s).alias("at"))
    left = F.max_by(F.col("before_n") + F.col("net_n"), "second")
    points = tops.agg(F.max("top_n").alias("top"), left.alias("left")).select(
        "queue", F.unix_seconds("at"), "top", "left"
    )
    plots = [
        Plot(
            "Messages in the queue",
            COUNT,
            lines(_held([(str(q), float(t), float(n), float(left)) for q, t, n, left in points.collect()], interval_s)),
            interval_s=interval_s,
            between=JOINED,
        )
    ]
    notes = _notes(queues.orderBy(F.desc("peakDepth"), *_QUEUE).take(ROWS_SHOWN_MAX))
    frames = {"capacity_addresses": addresses, "capacity_queues": queues}
    tables = [of_addresses, of_queues, _advice_table(advices)]
    return Result("capacity", "Capacity", facts, tables, plots if plots[0].series else [], texts, notes, frames)


def _held(points: list[tuple[str, float, float, float]], interval_s: int) -> list[tuple[str, float, float]]:
    """The most in each interval in which something happened, and what was left of it until the next one."""
    last = {queue: (begin, left) for queue, begin, _, left in sorted(points)}
    end = max((begin for begin, _ in last.values()), default=0.0)
    points = sorted(points + [(queue, end, left, left) for queue, (begin, left) in last.items() if begin < end])
    found = [(queue, begin, top) for queue, begin, top, _ in points]
    for (queue, begin, _, left), (other, later, _, _) in pairwise(points):
        if queue == other and later - begin > interval_s:
            found += [(queue, begin + interval_s, left), (queue, later - interval_s, left)]
    return sorted(set(found))


def _is_displaced() -> Expression:
    """Did a ring or a newer value take the message's place?"""
    return F.col("event").isin(names.REPLACED, "superseded")


def _notes(queues: Sequence[Row]) -> list[str]:
    """What the numbers of some queues do not say, or not loud enough."""
    notes: list[str] = []
    for row in queues:
        if row.serviceRate and row.drainS is None and row.hadBacklog:
            rates = f"({row.arrivalRate:.1f} per s) than its consumers do ({row.serviceRate:.1f})"
            notes.append(f"{row.queue}: more messages arrive {rates}; a backlog never drains")
    steady = [row.queue for row in queues if row.serviceRate and row.drainS is None and not row.hadBacklog]
    if steady:
        notes.append(
            f"consumers of {_named(steady)} kept up with all arrivals; how fast they would drain a backlog is not known"
        )
    idle = [row.queue for row in queues if not row.serviceRate]
    if idle:
        notes.append(f"no consumer acknowledged anything in {_named(idle)}; messages stay there")
    return notes


def _named(queues: Sequence[str]) -> str:
    """The first of them; the table has all."""
    more = f" and {len(queues) - _NAMED_MAX:,} more" if len(queues) > _NAMED_MAX else ""
    return ", ".join(queues[:_NAMED_MAX]) + more


def _timeline(
    steps: DataFrame, keys: tuple[str, ...], amounts: tuple[str, ...] = ("n",), counts: Sequence[Expression] = ()
) -> DataFrame:
    """Per second: the sum before it of each amount, its change, and the highest that it came to within, exact to the
    record (columns ``before_<name>``, ``net_<name>``, ``top_<name>``), and ``counts`` of the second's rows.

    In two levels, so that no task has to sort all records of a busy queue: the running sum within a second, then that
    over seconds.
    """
    # The log tells of an arrival and then, in the same turn, of what it displaced; the queue never held both.
    order = ("timestamp", F.desc(_DISPLACED), "offset", F.desc(amounts[0]))
    within = Window.partitionBy(*keys, "second").orderBy(*order)
    over = Window.partitionBy(*keys).orderBy("second").rowsBetween(Window.unboundedPreceding, -1)
    so_far = within.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = steps.withColumn("second", bucket("timestamp", 1))
    running = running.select("*", *(F.sum(name).over(so_far).alias(f"at_{name}") for name in amounts))
    sums = [F.sum(name).alias(f"net_{name}") for name in amounts]
    tops = [F.greatest(F.max(f"at_{name}"), F.lit(0)).alias(f"in_{name}") for name in amounts]
    seconds = running.groupBy(*keys, "second").agg(*sums, *tops, *counts)
    for name in amounts:
        before = F.coalesce(F.sum(f"net_{name}").over(over), F.lit(0))
        seconds = seconds.withColumn(f"before_{name}", before)
        seconds = seconds.withColumn(f"top_{name}", F.col(f"before_{name}") + F.col(f"in_{name}"))
    return seconds


def _queues(seconds: DataFrame, outage_s: int) -> DataFrame:
    """A row per queue. Messages arrive from the first to the last second with an arrival: how long the queue takes to
    drain after that says nothing of what comes in.
    """
    arriving = F.when(F.col("arrivals") > 0, F.unix_seconds("second"))
    span_s = F.max(arriving) - F.min(arriving) + 1
    totals = seconds.groupBy(*_QUEUE).agg(
        F.sum("arrivals").alias("arrivals"),
        F.coalesce(F.sum("arrivals") / span_s, F.lit(0.0)).alias("arrivalRate"),
        F.max("service").cast("double").alias("serviceRate"),
        F.max("hadBacklog").alias("hadBacklog"),
        F.max("top_n").alias("peakDepth"),
        F.sum("replaced").alias("replaced"),
        F.ceil(F.max("waiting")).alias("ring"),
        F.max("inOutage").alias("inOutage"),
    )
    lasting = F.greatest("inOutage", F.ceil(F.col("arrivalRate") * outage_s))
    spare = F.col("serviceRate") - F.col("arrivalRate")
    return (
        totals.withColumn("outageBacklog", lasting)
        .withColumn("drainS", F.when(spare > 0, F.ceil(F.col("outageBacklog") / spare)))
        .drop("inOutage")
    )


def _seconds(events: DataFrame, outage_s: int) -> DataFrame:
    """A row per queue and second in which something happened, with what its queue's consumers can do (``service``), how
    many messages would be waiting if they did so and nothing had been lost (``waiting``), and how many came in the last
    ``outage_s`` (``inOutage``).
    """
    counts = (
        F.count(at(names.ARRIVALS)).alias("arrivals"),
        F.count(at(names.ACKED)).alias("acked"),
        F.count(at(names.REPLACED)).alias("replaced"),
    )
    seconds = _timeline(events, _QUEUE, counts=counts)
    all_of_it = Window.partitionBy(*_QUEUE)
    in_order = all_of_it.orderBy(F.unix_seconds("second"))
    acked = F.when(F.col("acked") > 0, F.col("acked"))
    busy = F.when(F.col("before_n") + F.col("net_n") > 0, acked)
    service = F.coalesce(
        F.element_at(F.percentile_approx(busy, [0.5], ACCURACY).over(all_of_it), 1),
        F.max(acked).over(all_of_it),
        F.lit(0),
    )
    had_backlog = F.max(busy.isNotNull()).over(all_of_it)
    elapsed = F.unix_seconds("second") - F.min(F.unix_seconds("second")).over(all_of_it)
    earlier = F.coalesce(F.sum("arrivals").over(in_order.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0))
    # A queue that is served at a fixed rate holds what came since it was empty, less what was served since then; it was
    # last empty where this sum was lowest (Lindley's recursion, written without recursion).
    seconds = seconds.withColumn("hadBacklog", had_backlog).withColumn("service", service)
    seconds = seconds.withColumn("sum", earlier - F.col("service") * elapsed)
    lowest = F.min("sum").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return seconds.withColumn("waiting", F.col("sum") + F.col("arrivals") - lowest).withColumn(
        "inOutage", F.sum("arrivals").over(in_order.rangeBetween(1 - outage_s, Window.currentRow))
    )


def _addresses(events: DataFrame, queues: DataFrame) -> DataFrame:
    """A row per address: its messages count once, from when they come until the last of their queues is done with them.
    What a purge took with a whole page is not told one by one, and counts to the end.
    """
    is_end = F.col("event").isin(*names.ENDS)
    moment = F.struct("offset", "timestamp", _is_displaced().alias(_DISPLACED))
    lives = events.groupBy("broker", "messageId").agg(
        F.max(at(names.PUBLISHED, "address")).alias("address"),
        F.max(at(names.PUBLISHED, F.col("bytes") + MESSAGE_OVERHEAD_BYTES)).alias("size"),
        F.max(at(names.PUBLISHED, moment)).alias("came"),
        F.count(at(names.ARRIVALS)).alias("queues"),
        F.count(F.when(is_end, True)).alias("done"),
        F.max(F.when(is_end, moment)).alias("went"),
    )
    sized = lives.where("came is not null and queues > 0")
    came, went = (
        F.struct(f"{one}.*", F.lit(sign).alias("n"), (sign * F.col("size")).alias("bytes"))
        for one, sign in (("came", 1), ("went", -1))
    )
    both = F.when(F.col("done") >= F.col("queues"), F.array(came, went)).otherwise(F.array(came))
    peaks = _timeline(sized.select(*_ADDRESS, F.inline(both)), _ADDRESS, ("n", "bytes")).groupBy(*_ADDRESS)
    sizes = sized.groupBy(*_ADDRESS).agg(
        F.count("*").alias("messages"), F.avg("size").alias("meanBytes"), F.max("size").alias("largestBytes")
    )
    backlogs = queues.groupBy(*_ADDRESS).agg(F.max("outageBacklog").alias("outageMessages"))
    highest = peaks.agg(F.max("top_n").alias("peakMessages"), F.max("top_bytes").alias("peakBytes"))
    joined = sizes.join(highest, list(_ADDRESS)).join(backlogs, list(_ADDRESS), "left")
    outage = F.coalesce("outageMessages", F.lit(0)) * F.col("meanBytes")
    return joined.withColumn("outageBytes", F.ceil(outage)).drop("outageMessages")


def _needs(of_addresses: Table, of_queues: Table) -> list[Need]:
    """What each address needs, on whichever broker it needs most. One with a wildcard in it has no settings."""
    queues: dict[str, dict[str, int | None]] = {}
    for _, address, queue, _, _, _, _, replaced, ring, _, _ in of_queues.rows:
        known = queues.setdefault(address, {})
        known[queue] = max(ring, known.get(queue) or 0) if replaced else known.get(queue)
    needs: dict[str, Need] = {}
    for _, address, _, _, largest, peak_messages, peak_bytes, outage in of_addresses.rows:
        rings = {queue: ring for queue, ring in queues.get(address, {}).items() if ring is not None}
        need = Need(
            address,
            peak_messages,
            peak_bytes,
            largest,
            outage,
            rings,
            bool(rings) and len(rings) == len(queues[address]),
        )
        needs[address] = _larger(needs.get(address, need), need)
    return sorted((need for need in needs.values() if not is_wildcard(need.address)), key=lambda need: need.address)


def _larger(one: Need, other: Need) -> Need:
    """What would do on either of two brokers; their rings are the same already."""
    return replace(
        one,
        peak_messages=max(one.peak_messages, other.peak_messages),
        peak_bytes=max(one.peak_bytes, other.peak_bytes),
        largest_bytes=max(one.largest_bytes, other.largest_bytes),
        outage_bytes=max(one.outage_bytes, other.outage_bytes),
    )


def _advice_table(advices: list[Advice]) -> Table:
    columns = (
        Column("address", "address"), Column("maxSizeBytes", "max-size-bytes", BYTES),
        Column("pageSizeBytes", "page-size-bytes", BYTES), Column("ringSize", "default-ring-size", COUNT),
        Column("diskBytes", "pages after the outage", BYTES),
    )  # fmt: skip
    rows = [(a.need.address, a.max_size_bytes, a.page_size_bytes, a.ring_size, a.disk_bytes) for a in advices]
    return Table("advice", "Advice", columns, rows)
