"""The folder of a broker that keeps nothing: made when it is needed, and then gone without a trace."""

from __future__ import annotations

from pathlib import Path

from artemis_py.server.store import TransientFolder


def test_it_takes_the_folders_along_that_it_made(tmp_path: Path) -> None:
    """A broker without persistence left ``data/paging`` and ``data/largemessages`` behind."""
    folder = TransientFolder(tmp_path / "data" / "paging")
    folder.create("a", 1)
    assert (tmp_path / "data" / "paging").is_dir()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_it_leaves_folders_that_others_made_or_use(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    folder = TransientFolder(tmp_path / "data" / "paging")
    folder.create("a", 1)
    (tmp_path / "data" / "paging" / "of somebody else").touch()
    folder.close()
    assert [path.name for path in (tmp_path / "data" / "paging").iterdir()] == ["of somebody else"]
    other = TransientFolder(tmp_path / "data" / "large")
    other.create("a", 1)
    other.close()
    assert (tmp_path / "data").is_dir()
