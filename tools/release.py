"""``make release VERSION=0.2.0``: sets version and date, builds sdist and wheel, tries the wheel, commits and tags.

Nothing is pushed and nothing is uploaded. It refuses an unclean checkout, a version that has its tag, and a changelog
that says nothing of the version. A failure leaves the files as they were.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import venv
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CHANGELOG: Final = ROOT / "CHANGELOG.md"
VERSION_FILE: Final = ROOT / "artemis_py" / "version.py"
DIST: Final = ROOT / "dist"
_VERSION: Final = re.compile(r'(VERSION: Final = ")([^"]+)(")')


class ReleaseError(Exception):
    """Why there is no release."""


def with_version(text: str, version: str) -> str:
    """version.py with this version. Raises ReleaseError."""
    changed, count = _VERSION.subn(rf"\g<1>{version}\g<3>", text)
    if count != 1:
        raise ReleaseError(f"{VERSION_FILE.name} has no version to change")
    return changed


def with_date(changelog: str, version: str, date: str) -> str:
    """The changelog with the date of this version. Raises ReleaseError if it has nothing to say of it."""
    heading = f"## {version} (unreleased)\n"
    before, found, after = changelog.partition(heading)
    if not found:
        raise ReleaseError(f"CHANGELOG.md has no heading {heading.strip()!r}")
    if not after.partition("\n## ")[0].strip():
        raise ReleaseError(f"CHANGELOG.md says nothing of {version}")
    return f"{before}## {version} ({date})\n{after}"


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Build a release, try it, commit and tag it.")
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="build and try it, and put the files back")
    args = parser.parse_args()
    try:
        release(args.version, is_dry=args.dry_run)
    except (ReleaseError, subprocess.CalledProcessError) as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    return 0


def release(version: str, *, is_dry: bool) -> None:
    """Raises ReleaseError, and CalledProcessError if a step fails."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError(f"{version!r} is no version: three numbers with dots")
    if _git("status", "--porcelain"):
        raise ReleaseError("the checkout has changes; commit or remove them")
    if _git("tag", "--list", f"v{version}"):
        raise ReleaseError(f"the tag v{version} is there already")
    before = {path: path.read_text("utf-8") for path in (CHANGELOG, VERSION_FILE)}
    CHANGELOG.write_text(with_date(before[CHANGELOG], version, f"{datetime.now(UTC):%Y-%m-%d}"), "utf-8")
    is_released = False
    try:
        VERSION_FILE.write_text(with_version(before[VERSION_FILE], version), "utf-8")
        wheel = _build(version)
        _try(wheel, version)
        if not is_dry:
            _git("commit", "--quiet", "--message", f"release: {version}", str(CHANGELOG), str(VERSION_FILE))
            _git("tag", "--annotate", f"v{version}", "--message", f"artemis_py {version}")
            is_released = True
    finally:
        if not is_released:
            for path, text in before.items():
                path.write_text(text, "utf-8")
    print(f"{'tried' if is_dry else f'tagged v{version}'}; in dist: {', '.join(sorted(os.listdir(DIST)))}")


def _build(version: str) -> Path:
    """sdist and wheel, with the sources and for all platforms. Returns the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    environment = {**os.environ, "ARTEMIS_PY_MYPYC": "0"}
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--target", "wheel"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    wheels = list(DIST.glob(f"artemis_py_broker-{version}-*.whl"))
    if len(wheels) != 1 or not (DIST / f"artemis_py_broker-{version}.tar.gz").exists():
        raise ReleaseError(f"dist has not one sdist and one wheel of {version}")
    return wheels[0]


def _try(wheel: Path, version: str) -> None:
    """In an environment that has nothing else, far from the checkout: install, write a configuration, check it, run."""
    with TemporaryDirectory() as folder:
        venv.create(f"{folder}/venv", with_pip=True)
        python, command = f"{folder}/venv/bin/python", f"{folder}/venv/bin/artemis-py"
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ARTEMIS_PY"))
        }
        environment |= {"STOMP_PORT": "0", "HTTP_PORT": "0", "ARTEMIS_PY_NEW_PASSWORD": "of nobody"}

        def run(*words: str) -> str:
            done = subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True, text=True)
            return done.stdout

        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
        said = run(command, "--version")
        if version not in said:
            raise ReleaseError(f"--version of the wheel says {said.strip()!r}")
        run(command, "init")
        run(command, "check", "--strict")
        _run_once([command, "run"], folder, environment)


def _run_once(command: list[str], folder: str, environment: dict[str, str]) -> None:
    """The broker gets ready, and stops when it is told to."""
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if " BRK-1004 " in line:
                process.terminate()
        if process.wait() or not any(" BRK-1004 " in line for line in said):
            raise ReleaseError(f"the broker of the wheel ended with {process.returncode}:\n{''.join(said)}")


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
