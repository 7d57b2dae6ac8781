"""Directories that a start and ``check`` may not look into: they say so, and go on or end with a clear error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from artemis_py.cli.check import journal_problems
from artemis_py.config.settings import BrokerConfig
from artemis_py.server.configuration.reading import stamps_of
from artemis_py.server.journal_store import accept_losses, lock_journal
from artemis_py.server.store import TransientStore, unread_journal
from artemis_py.storage.disk.disk import DiskError
from tests.kit.documents import load_core


@pytest.fixture(params=["the directory", "one above it"])
def closed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that its owner alone may look into, for one who is not root."""
    directory = tmp_path / "closed" / "journal"
    directory.mkdir(parents=True)
    (directory / f"{1:016x}.log").touch()
    barred = str(directory if request.param == "the directory" else directory.parent)

    def refuse(real: Any, itself: bool, path: Any = ".", *args: Any, **options: Any) -> Any:
        text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        if text.startswith(f"{barred}/") or (itself and text == barred):
            raise PermissionError(13, "Permission denied", text)
        return real(path, *args, **options)

    for name in ("listdir", "scandir", "mkdir", "stat", "open"):
        itself = name not in ("stat", "open")
        monkeypatch.setattr(os, name, partial(refuse, getattr(os, name), itself))
    yield directory
    monkeypatch.undo()


def _config(directory: Path, *, persists: bool, creates: bool = True) -> BrokerConfig:
    return load_core(
        f"<persistence-enabled>{str(persists).lower()}</persistence-enabled>"
        f"<create-journal-dir>{str(creates).lower()}</create-journal-dir>"
        f"<journal-directory>{directory}</journal-directory><paging-directory>{directory.parents[1]}/p"
        f"</paging-directory><large-messages-directory>{directory.parents[1]}/l</large-messages-directory>"
    )


def test_a_broker_without_persistence_starts_and_says_so(closed: Path) -> None:
    config = _config(closed, persists=False)
    said = unread_journal(config)
    assert said is not None
    assert f"whether {closed} has a journal cannot be looked at: Permission denied" in said
    store = TransientStore(config, lambda: None, lambda: None)
    assert store.report == [f"warning: {said}"]
    store.close()


@pytest.mark.parametrize("persists", [True, False])
def test_check_says_so(closed: Path, persists: bool) -> None:
    (problem,) = journal_problems(_config(closed, persists=persists))
    assert "Permission denied" in problem.message


@pytest.mark.parametrize("creates", [True, False])
def test_a_broker_with_persistence_ends_with_an_error(closed: Path, creates: bool) -> None:
    with pytest.raises(DiskError, match=r"Permission denied|cannot be looked at"):
        lock_journal(_config(closed, persists=True, creates=creates)).release()


def test_other_looks(closed: Path) -> None:
    assert stamps_of(closed / "broker.xml", [str(closed)])
    with suppress(DiskError):
        accept_losses(_config(closed, persists=True))
