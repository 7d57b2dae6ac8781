"""Conditions and expressions over the table ``messages``, as users write them for a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from artemis_py.spark.jobs.source import JobError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WORD: Final = re.compile(r"\w+")
COLUMNS: Final = "The columns are those of the table messages, header['name'] and text (docs/pipeline.md)"


def words_of(*texts: str | None) -> set[str]:
    """All that may be names of columns in these expressions, in small letters: Spark does not tell cases apart."""
    return {word.lower() for text in texts if text for word in _WORD.findall(text)}


def selected(messages: DataFrame, where: str | None) -> DataFrame:
    """The rows that meet a condition, with two columns more: ``header``, of each name the first value, and ``text``,
    the body, where ``headers`` and ``value`` are there. Raises JobError for a condition that Spark refuses.
    """
    if "headers" in messages.columns:
        names = F.array_distinct(F.transform("headers", lambda header: header["key"]))
        messages = messages.withColumn("header", F.map_from_arrays(names, F.transform(names, _first_value)))
    if "value" in messages.columns:
        messages = messages.withColumn("text", F.col("value").cast("string"))
    if where is None:
        return messages
    with refused("condition", where, COLUMNS):
        return messages.where(where)


def _first_value(name: Column) -> Column:
    """Of repeated headers the first counts."""
    same = F.filter("headers", lambda header: header["key"] == name)
    return F.element_at(same, 1)["value"].cast("string")


@contextmanager
def refused(what: str, text: str, advice: str) -> Iterator[None]:
    """Raises JobError for what Spark refuses."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as problem:
        line = str(problem).strip().splitlines()[0]
        raise JobError(f"the {what} {text!r} is not valid: {line}. {advice}") from None
