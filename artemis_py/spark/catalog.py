"""Tables in Spark's catalog: ``CREATE TABLE … USING artemis``, and one for each address.

Spark passes a table's options to a Python source when the table is created, but not when it is read (as of 4.3; its
``PythonTable`` takes only the schema). It does keep the schema with the metadata of columns, so the options are stored
there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from artemis_py.errors import PipelineError
from artemis_py.spark.logins import SECRETS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_OPTION: Final = "option."
"""The prefix with which Spark repeats each option of a created table, besides its own properties."""
_PROVIDER: Final = "provider"
_KEY: Final = "artemis"
_WHERE: Final = frozenset(
    {
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
_OTHER_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_]")
"""Characters that Spark's catalog refuses in table names, even quoted."""
_VIEW_OF: Final = "artemisAddress"
"""The address of a table made by ``views``, which marks such tables."""


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
        if name.lower() in SECRETS:
            raise PipelineError(
                f"option {name} would be stored in the catalog, and in files written from the table. Leave it out, and "
                f"give {name}File, or give it where the table is read: SELECT … FROM the_table WITH ({name} '…')"
            )
    return found


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


def views(spark: SparkSession, source: str | Mapping[str, str], database: str = "artemis") -> dict[str, str]:
    """Create a table for each address, so that ``SELECT … FROM artemis.orders`` works. Call it again to add tables of
    new addresses and remove those of addresses that are gone.

    ``source`` is the URL of a broker's HTTP acceptor, a directory, or options as for ``spark.read``. Returns the table
    name of each address. Spark's catalog allows only letters, digits and underscores in names, even quoted: other
    characters become underscores (``orders.eu``: ``artemis.orders_eu``). If two addresses would share a name, all
    except one that has exactly this name get a stable suffix.

    Raises PipelineError for a password, and if the database has another table with such a name.
    """
    options = options_of(source)
    for name in options:
        if name.lower() in SECRETS:
            raise PipelineError(
                f"tables in the catalog show their options to everybody, so they cannot have a {name}. Leave it out, "
                f"and give {name}File, or give it where a table is read: SELECT … FROM {database}.orders WITH "
                f"({name} '…')"
            )
    where = {name: text for name, text in options.items() if name.lower() in _WHERE}
    rows = spark.read.format("artemis").options(**where, table="addresses", columns="address").load()
    names = table_names({row.address for row in rows.distinct().collect()})
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(database)}")
    made = _made_before(spark, database)
    for name in names.values():
        if not made.get(name.lower(), True):
            raise PipelineError(
                f"{database}.{name} is not one of these tables; name another database, as in views(…,"
                f' database="{database}_log")'
            )
    for name in filter(made.get, made):
        spark.sql(f"DROP TABLE IF EXISTS {_quoted(database)}.{_quoted(name)}")
    columns = spark.read.format("artemis").options(**options).load().schema
    for address, name in names.items():
        chosen = {**_without_choice(options), "subscribePattern" if "," in address else "subscribe": address}
        schema = remembering(columns, chosen, **{_VIEW_OF: address})
        spark.catalog.createTable(f"{_quoted(database)}.{_quoted(name)}", source="artemis", schema=schema, **chosen)
    return {address: f"{database}.{name}" for address, name in names.items()}


def _made_before(spark: SparkSession, database: str) -> dict[str, bool]:
    """Of each table in the database, whether ``views`` made it."""
    from pyspark.errors import AnalysisException

    found: dict[str, bool] = {}
    for table in spark.catalog.listTables(_quoted(database)):
        try:
            columns = spark.table(f"{_quoted(database)}.{_quoted(table.name)}").schema.fields
        except AnalysisException:  # of a format that this Spark lacks, or a view of what is gone
            columns = []
        found[table.name.lower()] = any(_VIEW_OF in one.metadata for one in columns)
    return found


def table_names(addresses: Iterable[str]) -> dict[str, str]:
    """A name in Spark's catalog for each address; names are case-insensitive, as in the catalog. An address' name does
    not depend on the others unless it conflicts.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
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
    """The options for a URL or a directory, or the given options."""
    if isinstance(source, Mapping):
        return dict(source)
    return {"url" if source.startswith(("http://", "https://")) else "journal": source}


def _without_choice(options: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in options.items() if name.lower() not in ("subscribe", "subscribepattern")}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
