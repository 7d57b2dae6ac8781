"""One Spark for all tests of this folder, with a quick start; they are skipped where pyspark or Java is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import pytest

from artemis_py.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A JVM that starts fast and stays small: the tests' data are small.
QUICK_JVM: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
}


def why_no_spark() -> str | None:
    """What this machine lacks to run Spark, or None."""
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed (extra spark)"
    from artemis_py.spark.java import ensure_java

    try:
        ensure_java(dict(os.environ))
    except PipelineError as lacking:
        return str(lacking)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test of this folder, and skips all of them with the reason where Spark cannot run."""
    own = [item for item in items if "tests/spark/" in item.path.as_posix()]
    reason = why_no_spark() if own else None
    for item in own:
        item.add_marker(pytest.mark.spark)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on two cores with three attempts for each task, the data source registered."""
    from artemis_py.spark import session

    running = session("artemis_py tests", **QUICK_JVM)
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()
