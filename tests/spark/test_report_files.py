"""Files that a job writes replace what was there whole, or leave it as it was."""

from __future__ import annotations

import argparse
import errno
import os
import stat
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from artemis_py.cli.pipeline import _show
from artemis_py.errors import PipelineError
from artemis_py.spark.jobs.commands import Call, _capacity
from artemis_py.spark.jobs.report_files import may_be_written, write_report
from artemis_py.spark.jobs.result import Result, Text

RESULT = Result("capacity", "What it needs", texts=[Text("broker.xml", "the file", "<configuration/>")])


def write_page(file: Path) -> None:
    _show(argparse.Namespace(html=file, format="json"), RESULT)


def write_xml(file: Path) -> None:
    _capacity(Call(None, None, print, print), argparse.Namespace(outage=1, memory=1, xml=file))  # type: ignore[arg-type]


@pytest.mark.parametrize("write", [write_page, write_xml])
def test_a_full_disk_leaves_what_was_there(
    write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = types.ModuleType("artemis_py.spark.jobs.capacity")
    job.capacity = lambda *_args, **_options: RESULT  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, job.__name__, job)
    file = tmp_path / "broker.xml"
    file.write_text("mine")
    file.chmod(0o640)
    with monkeypatch.context() as full:

        def no_room(_descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        full.setattr(os, "fsync", no_room)
        with pytest.raises(PipelineError, match=r"broker\.xml cannot be written: No space left"):
            write(file)
    assert (file.read_text(), os.listdir(tmp_path)) == ("mine", ["broker.xml"])
    write(file)
    assert "configuration" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert may_be_written(pipe)
    write_report(pipe, "page")
    assert os.read(reader, 10) == b"page"
    os.close(reader)
    assert pipe.is_fifo()
    assert not may_be_written(tmp_path / "none" / "page.html")
