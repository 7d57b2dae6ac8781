"""JSON Schemas of bodies, as Spark SQL (docs/spark-sql.md, "Bodies as columns")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from artemis_py.errors import PipelineError
from artemis_py.spark import session, views
from artemis_py.spark.body_schema import configured_schemas, read_schema
from artemis_py.spark.catalog import table_names
from tests.spark.made_log import START_MS, MadeLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "An order",
    "type": "object",
    "required": ["id", "amount", "buyer"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer"},
        "amount": {"type": "number"},
        "state": {"type": ["string", "null"], "enum": ["open", "it's done", None]},
        "timestamp": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "paid": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "buyer": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "e-mail": {"type": "string", "format": "email"}},
        },
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "$defs": {
        "line": {
            "type": "object",
            "required": ["sku"],
            "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "enum": [1, 2, 3]}},
        }
    },
}
GOOD = {
    "id": 7, "amount": 2.5, "state": "it's done", "timestamp": "2026-05-01T12:00:00Z", "day": "2026-05-01",
    "paid": True, "buyer": {"name": "Ann", "e-mail": "a@b"}, "lines": [{"sku": "x", "count": 2}, {"sku": "y"}],
    "more": [1],
}  # fmt: skip
BAD: list[tuple[bytes, str]] = [
    (b" ", "the body is no JSON object"),
    (b"[1]", "the body is no JSON object"),
    (b'[{"id": 1, "amount": 1, "buyer": {"name": "n"}}]', "the body is no JSON object"),
    (b'{"id": 1', "the body is no JSON"),
    (b"{}", "id is missing"),
    (json.dumps({**GOOD, "amount": None}).encode(), "amount is missing"),
    (json.dumps({**GOOD, "amount": "much"}).encode(), "amount is no number"),
    (json.dumps({**GOOD, "id": 1.5}).encode(), "id is no integer"),
    (json.dumps({**GOOD, "day": "yesterday"}).encode(), "day is no date"),
    (json.dumps({**GOOD, "paid": 5}).encode(), "paid is no boolean"),
    (json.dumps({**GOOD, "buyer": "Ann"}).encode(), "buyer is no object"),
    (json.dumps({**GOOD, "buyer": {"e-mail": "x"}}).encode(), "buyer.name is missing"),
    (json.dumps({**GOOD, "state": "lost"}).encode(), "state is none of open, it's done"),
    (json.dumps({**GOOD, "lines": [{"sku": "x"}, {"count": 1}]}).encode(), "lines[].sku is missing"),
    (json.dumps({**GOOD, "lines": [{"sku": "x", "count": 9}]}).encode(), "lines[].count is none of 1, 2, 3"),
    (
        json.dumps({**GOOD, "lines": [{"sku": "x", "count": "many"}]}).encode(),
        "a value has another type than the schema says",
    ),
    (b'{"id": 1, "amount": 1, "buyer": {"name": "n"}} and more', "the body is no JSON"),
    (b'{"id": 1, "amount": 1, "buyer": {"name": "n"}}, {"id": 2}', "the body is no JSON"),
    (b'{"id": 1, "amount": 1, "buyer": {"name": "n"}}{"id": 2}', "the body is no JSON"),
]
FEW = [b'{"id": 1, "amount": 3, "buyer": {"name": "Bo"}}', b' {"buyer": {"name": 5}, "amount": -1e3, "id": 2}']


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    log = MadeLog(tmp_path_factory.mktemp("bodies") / "log")
    log.segment(START_MS)
    for body in (json.dumps(GOOD).encode(), *FEW, *(body for body, _ in BAD)):
        log.publish(START_MS + 1, 1, body=body)
    log.publish(START_MS + 1, 2, address="orders.bad", body=b"else")
    log.close()
    return str(log.folder)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, log: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    file = tmp_path_factory.mktemp("schema") / "orders.schema.json"
    file.write_text(json.dumps(ORDER), "utf-8")
    yield views(spark, log, "bodies", bodies={"orders": file, "returns": ORDER})
    spark.sql("DROP DATABASE bodies CASCADE")


def test_properties_are_columns(spark: SparkSession, tables: dict[str, str]) -> None:
    frame = spark.table(tables["orders"])
    assert frame.columns == [*ORDER["properties"], "_metadata"]
    types = dict(frame.dtypes)
    assert (types["id"], types["amount"], types["paid"]) == ("bigint", "double", "boolean")
    assert (types["timestamp"], types["day"]) == ("timestamp", "date")
    row, *others = frame.orderBy("_metadata.offset").collect()
    assert (row.id, row.amount, row.state, row.paid) == (7, 2.5, "it's done", True)
    assert (str(row.day), row.timestamp.hour, row.buyer["e-mail"]) == ("2026-05-01", 12, "a@b")
    assert [(line.sku, line["count"]) for line in row.lines] == [("x", 2), ("y", None)]
    assert [(other.id, other.amount, other.state, other.buyer.name) for other in others] == [
        (1, 3.0, None, "Bo"), (2, -1000.0, None, "5"),
    ]  # fmt: skip
    assert row._metadata.address == "orders"
    assert json.loads(row._metadata.value) == GOOD
    [total] = spark.sql("SELECT sum(amount) AS sum FROM bodies.orders WHERE _metadata.address = 'orders'").collect()
    assert total["sum"] == 2.5 + 3 - 1000


def test_other_bodies_stand_aside_with_a_reason(spark: SparkSession, tables: dict[str, str]) -> None:
    rows = spark.table("bodies.orders_bad").orderBy("offset").collect()
    assert [(bytes(row.value), row.error) for row in rows] == BAD
    assert spark.table("bodies.orders_log").count() == len(BAD) + 3
    assert spark.table(tables["returns"]).count() == spark.table("bodies.returns_bad").count() == 0
    assert spark.table(tables["orders.bad"]).count() == 2, "an address of nearly that name"


def test_set_once_for_every_session(spark: SparkSession, log: str, tmp_path: Path) -> None:
    """The settings are those of ``spark-defaults.conf``, ``--conf`` or a session."""
    (tmp_path / "orders.json").write_text(json.dumps(ORDER), "utf-8")
    settings: dict[str, Any] = {
        "spark.artemis.views": json.dumps({"journal": log}),
        "spark.artemis.bodies": str(tmp_path),
    }
    try:
        session("another program", **settings)
        [row] = spark.sql("SELECT count(*) AS count, sum(amount) AS sum FROM artemis.orders").collect()
        assert tuple(row) == (3, 2.5 + 3 - 1000)
        assert spark.table("artemis.orders_bad").count() == len(BAD)
        bodies: dict[str, Any] | None
        for bodies in (None, {}):  # by hand, without saying which bodies again, and then: none
            names = views(spark, log, bodies=bodies)
            there = {table.name: table.tableType for table in spark.catalog.listTables("artemis")}
            kinds = [there.get(name) for name in ("orders", "orders_bad", "orders_log")]
            assert kinds == (["MANAGED", "MANAGED", None] if bodies == {} else ["VIEW", "VIEW", "MANAGED"])
        assert names == {"orders": "artemis.orders", "orders.bad": "artemis.orders_bad"}
        spark.sql("CREATE VIEW artemis.orders_log AS SELECT 1 AS one")
        with pytest.raises(PipelineError, match=r"artemis\.orders_log is not one of these tables"):
            views(spark, log, bodies={"orders": ORDER})
    finally:
        for name in settings:
            spark.conf.unset(name)
        spark.sql("DROP DATABASE IF EXISTS artemis CASCADE")


def test_where_schemas_are(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"which has no file ADDRESS\.json with a JSON Schema"):
        configured_schemas(str(tmp_path))
    with pytest.raises(PipelineError, match="which is neither a directory nor a file with a JSON object"):
        configured_schemas(str(tmp_path / "nothing"))
    (tmp_path / "orders.eu.json").write_text(json.dumps(ORDER), "utf-8")
    assert configured_schemas(str(tmp_path)) == {"orders.eu": read_schema(ORDER)}
    one = tmp_path / "bodies"
    one.write_text(json.dumps({"a/b": ORDER, "c": "orders.eu.json"}), "utf-8")
    assert configured_schemas(str(one)) == {"a/b": read_schema(ORDER), "c": read_schema(ORDER)}
    one.write_text(json.dumps({"a/b": {"properties": {"n": {}}}}), "utf-8")
    with pytest.raises(PipelineError, match=r"bodies: a/b: #/properties/n/type is None"):
        configured_schemas(str(one))
    one.write_text("[]", "utf-8")
    with pytest.raises(PipelineError, match="must have a schema, or the name of a file, for each address"):
        configured_schemas(str(one))


def test_names_stay_apart() -> None:
    names = table_names({"orders", "orders.bad", "orders_log"}, ["orders"])
    assert names["orders"] == "orders"
    assert not {"orders_bad", "orders_log"} & set(names.values())


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": {"type": "string"}}, "# must be an object with properties"),
        ({"type": "object"}, "# is an object without properties"),
        ({"properties": {"n": {"type": "number", "minimum": 0}}}, "#/properties/n/minimum is not supported here"),
        ({"properties": {"n": {"type": ["number", "string"]}}}, "#/properties/n/type must be one type"),
        ({"properties": {"n": {}}}, "#/properties/n/type is None; supported: object, array, string"),
        ({"properties": {"n": {"type": "date"}}}, "#/properties/n/type is 'date'; supported"),
        (
            {"properties": {"n": {"oneOf": [{"type": "string"}, {"type": "number"}]}}},
            "#/properties/n/oneOf must be one",
        ),
        ({"properties": {"n": {"$ref": "other.json"}}}, "#/properties/n/$ref is 'other.json', which is not in this"),
        ({"properties": {"n": {"$ref": "#"}}}, "$ref leads back to itself"),
        ({"properties": {"n": True}}, "#/properties/n must be a schema"),
        ({"properties": {"l": {"type": "array"}}}, "#/properties/l/items must be a schema"),
        ({"properties": {"n": {"type": "integer", "enum": ["1"]}}}, "#/properties/n/enum must have values of the type"),
        ({"properties": {"a": {"type": "string"}, "A": {"type": "string"}}}, "names that differ in case only"),
        ({"properties": {"a": {"type": "string"}}, "required": ["b"]}, "#/required names b, no property"),
        ({"properties": {"_metadata": {"type": "string"}}}, "#/properties has _metadata, a name that the views need"),
        ({"properties": {"_CORRUPT": {"type": "string"}}}, "#/properties has _corrupt, a name that the views need"),
    ],
)
def test_what_sql_cannot_say_is_an_error(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(PipelineError) as refused:
        read_schema(schema)
    assert said in str(refused.value)


def test_files_that_are_no_schema(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"missing\.json: cannot be read as a JSON Schema: .*No such file"):
        read_schema(tmp_path / "missing.json")
    (tmp_path / "broken.json").write_text("{", "utf-8")
    with pytest.raises(PipelineError, match=r"broken\.json: cannot be read as a JSON Schema"):
        read_schema(tmp_path / "broken.json")
    with pytest.raises(PipelineError, match="For Avro start Spark with its package spark-avro"):
        read_schema(tmp_path / "order.avsc")
