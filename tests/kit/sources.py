"""Which files the tidy rules look at: everything that git tracks or would track."""

from __future__ import annotations

import ast
import functools
import subprocess
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "artemis_py"
_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
SKIPPED_AT_THE_TOP = frozenset({"build", "dist", "data"})


@functools.cache
def project_files() -> tuple[Path, ...]:
    """Every file of the project, ignored ones left out; without git (an unpacked archive), all but hidden ones."""
    try:
        listing = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        found = [path.relative_to(ROOT).parts for path in ROOT.rglob("*") if path.is_file()]
        kept = [parts for parts in found if parts[0] not in SKIPPED_AT_THE_TOP and "__pycache__" not in parts]
        return tuple(sorted(ROOT.joinpath(*parts) for parts in kept if not any(part[0] == "." for part in parts)))
    paths = (ROOT / name for name in listing.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(*folders: str) -> list[Path]:
    """The Python files of the project below the folders named (all of them when none is named)."""
    return [
        path
        for path in project_files()
        if path.suffix == ".py" and (not folders or path.relative_to(ROOT).parts[0] in folders)
    ]


def text_files() -> list[Path]:
    """Every file of the project that is UTF-8 text."""
    found = []
    for path in project_files():
        with suppress(UnicodeDecodeError):
            path.read_text(encoding="utf-8")
            found.append(path)
    return found


@functools.cache
def package_sources() -> dict[str, str]:
    """Module name → source, for every module of the package; of a package's ``__init__.py`` the name of the package."""
    return {
        shown(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path.read_text(encoding="utf-8")
        for path in python_files(PACKAGE)
    }


def statements_of(code: str) -> Iterator[ast.AST]:
    """The module and its statements at any depth: a tenth of all that ``ast.walk`` goes through."""
    left: deque[ast.AST] = deque([ast.parse(code)])
    while left:
        node = left.popleft()
        yield node
        left.extend(one for one in ast.iter_child_nodes(node) if isinstance(one, _WITH_STATEMENTS))


def shown(path: Path) -> str:
    """A path as the messages show it."""
    return path.relative_to(ROOT).as_posix()
