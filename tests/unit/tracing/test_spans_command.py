"""``artemis-py spans`` says when it was ended before it had read everything."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from artemis_py.cli import EXIT_INTERRUPTED
from artemis_py.cli.main import main
from artemis_py.tracing.reading import DirectorySource
from artemis_py.tracing.source import Part
from tests.kit.journal_story import Story


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_reading_is_not_a_whole_one(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(tmp_path)
    story.turn(story.declare)
    arguments = ["spans", "--journal", str(tmp_path), "--json"]
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        assert main(arguments) == 0
        assert "interrupted" not in capsys.readouterr().err
        all_parts = DirectorySource.parts

        def parts(source: DirectorySource) -> Iterator[Part]:
            os.kill(os.getpid(), number)
            yield from all_parts(source)

        monkeypatch.setattr(DirectorySource, "parts", parts)
        assert main(arguments) == EXIT_INTERRUPTED
        assert "interrupted: the rest of the log was not read" in capsys.readouterr().err
        assert signal.getsignal(signal.SIGTERM) == before[1]
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
