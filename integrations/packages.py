"""The packages here that this Python can have: ``list`` prints their folders, ``test`` runs their tests and mypy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent


def suitable() -> list[Path]:
    """The folders, one for each package; those that need a later Python are named on stderr."""
    found = []
    for project in sorted(HERE.glob("*/pyproject.toml")):
        needed = re.search(r'^requires-python = ">=3\.(\d+)"', project.read_text(), re.MULTILINE)
        assert needed, project
        if int(needed[1]) <= sys.version_info.minor:
            found.append(project.parent)
        else:
            sys.stderr.write(
                f"SKIPPED integrations/{project.parent.name}: it needs Python 3.{needed[1]}, this is 3."
                f"{sys.version_info.minor}; rm -r {sys.prefix} and name a later one: make integrations PYTHON=…\n"
            )
    return found


def tested(package: Path) -> tuple[bool, str]:
    """Are its tests and mypy content, and what they say."""
    said, is_good = "", True
    for program in ("pytest", "mypy"):
        done = subprocess.run(
            [Path(sys.executable).parent / program], cwd=package, capture_output=True, text=True, check=False
        )
        said += done.stdout + done.stderr
        is_good &= done.returncode == 0
    return is_good, said


def main() -> int:
    """Run the command of the command line."""
    packages = suitable()
    if sys.argv[1:] == ["list"]:
        sys.stdout.write(" ".join(map(str, packages)))
        return 0
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # much of a test is waiting for processes
        for package, (is_good, said) in zip(packages, pool.map(tested, packages), strict=True):
            sys.stdout.write(f"== integrations/{package.name}\n{said}\n")
            sys.stdout.flush()
            failed |= not is_good
    sys.stdout.write(
        "SKIPPED Celery's own integration tests: they need a checkout and Redis (integrations/kombu/README.md)\n"
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
