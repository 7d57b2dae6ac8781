"""A Python worker of Spark that writes its last bytes when Spark has left, as it may after a plan or a ``show()``:
nothing is printed. Without a JVM.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest

from artemis_py.spark.runtime import sessions
from artemis_py.spark.source import ArtemisDataSource
from tests.kit.process import eventually

TASK = """\
def main(infile, outfile):
    infile.read()  # to the end: Spark has left
    outfile.write(b"a row")
"""


def test_a_worker_that_writes_when_spark_has_left_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyspark_task.py").write_text(TASK, "utf-8")
    settings = sessions._absent({}, "")
    is_unix = settings.get("spark.python.unix.domain.socket.enabled") == "true"
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PYTHON_UNIX_DOMAIN_ENABLED": str(is_unix).lower(),
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(tmp_path),
        "PYTHON_WORKER_FACTORY_SECRET": "s",
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
    }
    command = [sys.executable, "-m", "pyspark.daemon", "pyspark_task"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as daemon:
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        assert daemon.stderr is not None
        number = int.from_bytes(daemon.stdout.read(4), "big")
        place = daemon.stdout.read(number) if is_unix else ("127.0.0.1", number)
        with socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET) as spark:
            spark.connect(place)
            with spark.makefile("rwb") as stream:
                worker = Path(f"/proc/{int.from_bytes(stream.read(4), 'big')}")
                if not is_unix:
                    stream.write(b"\0\0\0\1s")
                    stream.flush()
                    assert stream.read(6) == b"\0\0\0\2ok"
        eventually("the worker ends", worker.exists, lambda is_there: not is_there)
        daemon.stdin.close()
        assert daemon.stderr.read().decode() == ""


@pytest.mark.parametrize("call", ["schema", "reader", "streamReader"])
def test_a_planner_lets_spark_go_before_there_are_rows(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """With Unix sockets, which a session of somebody else may use, most of the tracebacks were of planners."""
    source = ArtemisDataSource({"url": "http://localhost:1"})
    schema = source.schema()
    before = traceback.print_exc
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name="pyspark.daemon"))
    monkeypatch.setattr(traceback, "print_exc", before)
    getattr(source, call)(*() if call == "schema" else (schema,))
    assert traceback.print_exc is not before
