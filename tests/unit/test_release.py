"""``make release``: what it writes, and what it refuses."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_version_and_date_are_written(release: ModuleType) -> None:
    text = (ROOT / "artemis_py" / "version.py").read_text("utf-8")
    assert 'VERSION: Final = "7.8.9"\n' in release.with_version(text, "7.8.9")
    changelog = "# Changelog\n\n## 7.8.9 (unreleased)\n\n- New.\n\n## 7.8.8 (2026-01-01)\n"
    dated = "# Changelog\n\n## 7.8.9 (2026-02-03)\n\n- New.\n\n## 7.8.8 (2026-01-01)\n"
    assert release.with_date(changelog, "7.8.9", "2026-02-03") == dated


@pytest.mark.parametrize(
    ("changelog", "why"),
    [
        ("# Changelog\n\n## 7.8.8 (2026-01-01)\n", "has no heading"),
        ("# Changelog\n\n## 7.8.9 (unreleased)\n\n## 7.8.8 (2026-01-01)\n\n- Old.\n", "says nothing of 7.8.9"),
    ],
)
def test_a_version_of_which_nothing_is_said(release: ModuleType, changelog: str, why: str) -> None:
    with pytest.raises(release.ReleaseError, match=why):
        release.with_date(changelog, "7.8.9", "2026-02-03")


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3rc1", ""])
def test_what_is_no_version(release: ModuleType, version: str) -> None:
    with pytest.raises(release.ReleaseError, match="is no version"):
        release.release(version, is_dry=True)


def test_the_changelog_tells_of_the_version_that_comes_next(release: ModuleType) -> None:
    version = release._VERSION.search((ROOT / "artemis_py" / "version.py").read_text("utf-8"))[2]
    assert f"## {version} (" in (ROOT / "CHANGELOG.md").read_text("utf-8")
