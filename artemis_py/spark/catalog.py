"""Tables in Spark's catalog: ``CREATE TABLE … USING artemis``, and one for each address.

Spark passes a table's options to a Python source when the table is created, but not when it is read (as of 4.3; its
``PythonTable`` takes only the schema). It does keep the schema with the metadata of columns, so the options are stored
there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from artemis_py.errors import PipelineError
from artemis_py.spark.body_schema import SETTING, configured_schemas, read_schema
from artemis_py.spark.shared_options import SECRETS, STORAGE, is_secret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_OPTION: Final = "option."
"""The prefix with which Spark repeats each option of a created table, besides its own properties."""
_PROVIDER: Final = "provider"
_KEY: Final = "artemis"
_WHERE: Final = frozenset(
    {
        "archive",
        "journal",
        "path",
        "broker",
        "url",
        "user",
        "passwordfile",
        "tokenfile",
        "cafile",
        "certificatefile",
        "keyfile",
        "verify",
        "brokertimeoutseconds",
        "failondataloss",
        "skipunavailablebrokers",
        "subscribe",
        "subscribepattern",
    }
)
"""Options that say which addresses there are."""
_PLACES: Final = frozenset({"archive", "journal", "path", "url"})
FIXED: Final = (
    "the schema is fixed; leave out schema(…), and choose columns with option columns; in SQL leave out the columns "
    "before USING, and write OPTIONS (…, columns 'value,key')"
)
OF_TABLE: Final = (
    "no option names the log. The table was created with columns, and of such a one Spark keeps no options for the "
    "source. Drop it, and leave the columns out: CREATE TABLE the_table USING artemis OPTIONS (url 'http://host:8161', "
    "columns 'value,key')"
)
"""Spark asks a Python source nothing when a table with columns is created (as of 4.3), so the error comes at the first
use.
"""
_OTHER_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_]")
"""Characters that Spark's catalog refuses in table names, even quoted."""
_VIEW_OF: Final = "artemisAddress"
"""The address of a table made by ``views``, which marks such tables."""
_COMMENT: Final = "artemis: over the table events"
_BODIES_COMMENT: Final = "artemis: over the messages of an address"
"""Mark views made by ``views``."""
_TABLE: Final = "TABLE"
_ANOTHER_S: Final = ""
_LOG: Final = "_log"
_BAD: Final = "_bad"
_OF_BODIES: Final = (_LOG, _BAD)
"""Of an address with a schema of its bodies: the table of its messages, and the view of those that are not of it."""
_OF_MESSAGES: Final = frozenset({"table", "columns", "includebody", "includeheaders"})
"""Options that the table of events does not share."""
EVENTS: Final = "events"
VIEWS: Final = {
    "latency": """\
SELECT broker, address, queue, messageId, consumer, beganAt, deliveredAt, ackedAt,
    unix_millis(deliveredAt) - unix_millis(beganAt) AS waitMs,
    unix_millis(ackedAt) - unix_millis(lastAt) AS holdMs,
    unix_millis(ackedAt) - unix_millis(beganAt) AS totalMs
FROM (
    SELECT broker, address, queue, messageId, consumer, IF(cameAt IS NULL, NULL, coalesce(dueAt, cameAt)) AS beganAt,
        coalesce(firstAt, ackedAt) AS deliveredAt, coalesce(lastAt, ackedAt) AS lastAt, ackedAt
    FROM (
        SELECT broker, address, queue, messageId,
            min(timestamp) FILTER (WHERE event IN ('routed', 'scheduled', 'recalled')) AS cameAt,
            max(timestamp) FILTER (WHERE event = 'due') AS dueAt,
            min(timestamp) FILTER (WHERE event = 'delivered') AS firstAt,
            max(timestamp) FILTER (WHERE event = 'delivered') AS lastAt,
            max(timestamp) FILTER (WHERE event = 'acked') AS ackedAt,
            max(consumer) FILTER (WHERE event = 'acked') AS consumer
        FROM {events}
        WHERE queue IS NOT NULL AND event IN ('routed', 'scheduled', 'recalled', 'due', 'delivered', 'acked')
        GROUP BY broker, address, queue, messageId
    )
)""",
    "throughput": """\
SELECT broker, address, queue, consumer, date_trunc('SECOND', timestamp) AS second,
    count_if(event = 'published') AS published,
    coalesce(sum(bytes) FILTER (WHERE event = 'published'), 0) AS bytes,
    count_if(event = 'delivered') AS delivered,
    count_if(event = 'acked') AS acked
FROM {events}
WHERE event IN ('published', 'delivered', 'acked')
GROUP BY broker, address, queue, consumer, date_trunc('SECOND', timestamp)""",
    # In two levels, so that no task sorts all events of a busy queue: within each second, then over the seconds. The
    # log tells of an arrival and then, in the same turn, of what it displaced; the queue never held both.
    "depth": """\
SELECT broker, address, queue, second, arrived, gone, before + arrived - gone AS depth, before + highest AS depthMax
FROM (
    SELECT *, coalesce(sum(arrived - gone) OVER (
            PARTITION BY broker, address, queue ORDER BY second
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
    FROM (
        SELECT broker, address, queue, second, coalesce(sum(n) FILTER (WHERE n > 0), 0) AS arrived,
            coalesce(-sum(n) FILTER (WHERE n < 0), 0) AS gone, greatest(max(running), 0) AS highest
        FROM (
            SELECT *, sum(n) OVER (
                PARTITION BY broker, address, queue, second ORDER BY timestamp, isDisplaced DESC, offset, n DESC
                ROWS UNBOUNDED PRECEDING) AS running
            FROM (
                SELECT broker, address, queue, messageId, timestamp, offset, date_trunc('SECOND', timestamp) AS second,
                    IF(event IN ('routed', 'scheduled', 'recalled'), 1, -coalesce(count, 1)) AS n,
                    event IN ('replaced', 'superseded') AS isDisplaced,
                    max(event IN ('routed', 'scheduled', 'recalled')) OVER (
                        PARTITION BY broker, queue, messageId) AS isKnown
                FROM {events}
                WHERE queue IS NOT NULL AND event NOT IN ('due', 'delivered', 'attempted')
            )
            WHERE isKnown OR messageId IS NULL
        )
        GROUP BY broker, address, queue, second
    )
)""",
}
"""Queries over the events of a log, by name: how long each message waited in each queue and was held; what was
published, delivered and acknowledged in each second; how many messages each queue held. ``{events}`` is a table with
the columns of ``events``.
"""


def declared(given: Mapping[str, str]) -> dict[str, str] | None:
    """The options of a table being created; None if none is. Raises PipelineError for a password or token: readers of
    the table, or of a file written from it, would see it.
    """
    if _PROVIDER not in given:
        return None
    found = {name[len(_OPTION) :]: text for name, text in given.items() if name.startswith(_OPTION)}
    if "path" in given:  # as OPTIONS (path …), and as LOCATION
        found["path"] = given["path"]
    for name in found:
        if name.lower().startswith(STORAGE) and is_secret(name):
            raise PipelineError(
                f"option {name} would be stored in the catalog, and in files written from the table. Leave it out, and "
                "give it in the environment of Spark's processes (AWS_SECRET_ACCESS_KEY …)"
            )
        if name.lower() in SECRETS:
            raise PipelineError(
                f"option {name} would be stored in the catalog, and in files written from the table. Leave it out, and "
                f"give {name}File, or give it where the table is read: SELECT … FROM the_table WITH ({name} '…')"
            )
    return found


def is_place_in(given: Mapping[str, str]) -> bool:
    """Does an option name a log?"""
    return any(name.lower() in _PLACES for name in given)


def remembering(schema: StructType, options: Mapping[str, str], **more: str) -> StructType:
    """The same columns, with the table's options."""
    from pyspark.sql.types import StructField, StructType

    first, *others = schema.fields
    noted = StructField(first.name, first.dataType, first.nullable, {_KEY: dict(options), **more})
    return StructType([noted, *others])


def remembered(schema: StructType) -> dict[str, str]:
    """The options stored in a table's columns; none for other columns."""
    found = [one.metadata[_KEY] for one in schema.fields if _KEY in one.metadata]
    return dict(found[0]) if found else {}


def check_insert(schema: StructType, given: Mapping[str, str]) -> None:
    """Raises PipelineError for an insert into a catalog table without a destination."""
    if remembered(schema) and "url" not in {name.lower() for name in given}:
        raise PipelineError(
            "the table's options name a log to read, but no acceptor to send to. Name a STOMP acceptor, as in INSERT "
            "INTO the_table WITH (url 'tcp://host:61613') SELECT …; other sink options may follow it"
        )


def views(
    spark: SparkSession,
    source: str | Mapping[str, str],
    database: str = "artemis",
    *,
    bodies: Mapping[str, str | Path | Mapping[str, Any]] | None = None,
) -> dict[str, str]:
    """Create a table for each address, so that ``SELECT … FROM artemis.orders`` works, the table ``events``, and the
    views ``latency``, ``throughput`` and ``depth`` over it. Call it again to add tables of new addresses and remove
    those of addresses that are gone.

    ``source`` is the URL of a broker's HTTP acceptor, a directory, or options as for ``spark.read``. Returns the table
    name of each address. Spark's catalog allows only letters, digits and underscores in names, even quoted: other
    characters become underscores (``orders.eu``: ``artemis.orders_eu``). If two addresses would share a name, all
    except one that has exactly this name get a stable suffix; so does an address called like one of the views.

    ``bodies`` has a JSON Schema for some addresses: a file, or a dictionary. Of ``orders`` then ``artemis.orders`` is a
    view with the properties as columns, and the rest of the message in ``_metadata``; ``artemis.orders_bad`` has the
    messages whose bodies are not of the schema, with ``error``; ``artemis.orders_log`` is the table below. Without
    ``bodies`` the setting ``spark.artemis.bodies`` counts (``body_schema.configured_schemas``).

    Raises PipelineError for a password, for a schema that SQL cannot say, and if the database has another table with
    such a name.
    """
    options = options_of(source)
    if bodies is None:
        place = spark.conf.get(SETTING, None)
        schemas = {} if place is None else configured_schemas(place)
    else:
        schemas = {address: read_schema(schema) for address, schema in bodies.items()}
    for name in options:
        if name.lower().startswith(STORAGE) and is_secret(name):
            raise PipelineError(
                f"tables in the catalog show their options to everybody, so they cannot have {name}. Leave it out, and "
                "give it in the environment of Spark's processes (AWS_SECRET_ACCESS_KEY …)"
            )
        if name.lower() in SECRETS:
            raise PipelineError(
                f"tables in the catalog show their options to everybody, so they cannot have a {name}. Leave it out, "
                f"and give {name}File, or give it where a table is read: SELECT … FROM {database}.orders WITH "
                f"({name} '…')"
            )
    where = {name: text for name, text in options.items() if name.lower() in _WHERE or name.lower().startswith(STORAGE)}
    rows = spark.read.format("artemis").options(**where, table="addresses", columns="address").load()
    names = table_names({row.address for row in rows.distinct().collect()} | schemas.keys(), schemas)
    of_bodies = [f"{names[address]}{suffix}" for address in schemas for suffix in _OF_BODIES]
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(database)}")
    made = _made_before(spark, database)
    for name in (*names.values(), *of_bodies, EVENTS, *VIEWS):
        if made.get(name.lower(), _TABLE) == _ANOTHER_S:
            raise PipelineError(
                f"{database}.{name} is not one of these tables; name another database, as in views(…,"
                f' database="{database}_log")'
            )
    for name in made.keys() - VIEWS.keys():
        if made[name] != _ANOTHER_S:
            spark.sql(f"DROP {made[name]} IF EXISTS {_quoted(database)}.{_quoted(name)}")
    columns = spark.read.format("artemis").options(**options).load().schema
    if schemas and "value" not in columns.names:
        raise PipelineError("bodies needs the column value: add it to option columns")
    for address, name in names.items():
        chosen = {**_without_choice(options), "subscribePattern" if "," in address else "subscribe": address}
        table = f"{_quoted(database)}.{_quoted(f'{name}{_LOG}' if address in schemas else name)}"
        _create(spark, table, columns, chosen, address)
        if address in schemas:
            good, bad = schemas[address].views(table, tuple(columns.names))
            for view, query in ((name, good), (f"{name}{_BAD}", bad)):
                spark.sql(f"CREATE VIEW {_quoted(database)}.{_quoted(view)} COMMENT '{_BODIES_COMMENT}' AS {query}")
    of_events = {name: text for name, text in options.items() if name.lower() not in _OF_MESSAGES} | {"table": EVENTS}
    columns = spark.read.format("artemis").options(**of_events).load().schema
    _create(spark, f"{_quoted(database)}.{EVENTS}", columns, of_events, "")
    for name, query in VIEWS.items():
        made_as = query.format(events=f"{_quoted(database)}.{EVENTS}")
        spark.sql(f"CREATE OR REPLACE VIEW {_quoted(database)}.{name} COMMENT '{_COMMENT}' AS {made_as}")
    return {address: f"{database}.{name}" for address, name in names.items()}


def _create(spark: SparkSession, name: str, columns: StructType, options: dict[str, str], address: str) -> None:
    schema = remembering(columns, options, **{_VIEW_OF: address})
    spark.catalog.createTable(name, source="artemis", schema=schema, **options)


def _made_before(spark: SparkSession, database: str) -> dict[str, str]:
    """Of each table in the database that ``views`` made, whether it is a table or a view; others are another's."""
    from pyspark.errors import AnalysisException

    found: dict[str, str] = {}
    for table in spark.catalog.listTables(_quoted(database)):
        if table.tableType == "VIEW":
            is_ours = table.description in (_COMMENT, _BODIES_COMMENT)
            found[table.name.lower()] = "VIEW" if is_ours else _ANOTHER_S
            continue
        try:
            columns = spark.table(f"{_quoted(database)}.{_quoted(table.name)}").schema.fields
        except AnalysisException:  # of a format that this Spark lacks, or a view of what is gone
            columns = []
        is_ours = any(_VIEW_OF in one.metadata for one in columns)
        found[table.name.lower()] = _TABLE if is_ours else _ANOTHER_S
    return found


def table_names(addresses: Iterable[str], with_bodies: Iterable[str] = ()) -> dict[str, str]:
    """A name in Spark's catalog for each address; names are case-insensitive, as in the catalog. An address' name does
    not depend on the others unless it conflicts. Names of those with bodies are free with each suffix, too.
    """
    found: dict[str, str] = {}
    taken = {EVENTS, *VIEWS, *(f"{_plain(one)}{suffix}".lower() for one in with_bodies for suffix in _OF_BODIES)}
    for address in sorted(addresses, key=lambda one: (_plain(one) != one, one)):
        name = _plain(address)
        if name.lower() in taken:
            name = f"{name}_{hashlib.sha256(address.encode()).hexdigest()[:8]}"
        taken.add(name.lower())
        found[address] = name
    return found


def _plain(address: str) -> str:
    return _OTHER_CHARACTERS.sub("_", address)


def options_of(source: str | Mapping[str, str]) -> dict[str, str]:
    """The options for a URL or a directory, or the given options, which may be a JSON object. Raises PipelineError."""
    if isinstance(source, Mapping):
        return dict(source)
    if source.startswith("{"):
        try:
            return {name: str(text) for name, text in json.loads(source).items()}
        except ValueError as error:
            raise PipelineError(f"options as JSON cannot be read: {error}") from None
    return {"url" if source.startswith(("http://", "https://")) else "journal": source}


def _without_choice(options: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in options.items() if name.lower() not in ("subscribe", "subscribepattern")}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
