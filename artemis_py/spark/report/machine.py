"""A result for programs: JSON, and Parquet files of its frames."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from artemis_py.shown import as_json as json_text
from artemis_py.spark.jobs.result import Result


def as_json(result: Result) -> str:
    """One object: ``job``, ``facts`` by name, ``tables`` by name as lists of objects, ``texts`` by name, ``notes``.
    Times are ISO 8601 in UTC; ``missing`` is the number of omitted rows by table.
    """
    tables = {
        table.name: [
            {column.name: value for column, value in zip(table.columns, row, strict=True)} for row in table.rows
        ]
        for table in result.tables
    }
    value = {
        "job": result.job,
        "facts": {column.name: fact for column, fact in result.facts},
        "tables": tables,
        "texts": {text.name: text.body for text in result.texts},
        "notes": list(result.notes),
        "missing": {table.name: table.missing for table in result.tables if table.missing},
    }
    return json_text(value, indent=2, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)


def write_parquet(result: Result, directory: Path) -> list[Path]:
    """Write each frame to a directory of its name, which is replaced. Returns the directories."""
    written = []
    for name, frame in result.frames.items():
        where = directory / name
        frame.write.mode("overwrite").parquet(str(where.absolute()))
        written.append(where)
    return written
