"""``make release``: what it writes, and what it refuses."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASE = import_module("tools.release")


def test_version_and_date_are_written() -> None:
    text = (ROOT / "artemis_py" / "version.py").read_text("utf-8")
    assert 'VERSION: Final = "7.8.9"\n' in RELEASE.with_version(text, "7.8.9")
    changelog = "# Changelog\n\n## 7.8.9 (unreleased)\n\n- New.\n\n## 7.8.8 (2026-01-01)\n"
    dated = "# Changelog\n\n## 7.8.9 (2026-02-03)\n\n- New.\n\n## 7.8.8 (2026-01-01)\n"
    assert RELEASE.with_date(changelog, "7.8.9", "2026-02-03") == dated


@pytest.mark.parametrize(
    ("changelog", "why"),
    [
        ("# Changelog\n\n## 7.8.8 (2026-01-01)\n", "has no heading"),
        ("# Changelog\n\n## 7.8.9 (unreleased)\n\n## 7.8.8 (2026-01-01)\n\n- Old.\n", "says nothing of 7.8.9"),
    ],
)
def test_a_version_of_which_nothing_is_said(changelog: str, why: str) -> None:
    with pytest.raises(RELEASE.ReleaseError, match=why):
        RELEASE.with_date(changelog, "7.8.9", "2026-02-03")


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3rc1", ""])
def test_what_is_no_version(version: str) -> None:
    with pytest.raises(RELEASE.ReleaseError, match="is no version"):
        RELEASE.release(version, is_dry=True)


def test_the_changelog_tells_of_the_version_that_comes_next() -> None:
    version = RELEASE._VERSION.search((ROOT / "artemis_py" / "version.py").read_text("utf-8"))[2]
    assert f"## {version} (" in (ROOT / "CHANGELOG.md").read_text("utf-8")
