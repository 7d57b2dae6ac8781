"""Lists every module with the first sentence of its docstring, in ARCHITECTURE.md behind the heading "Every module".

`python tools/module_index.py` writes the list anew (`make docs` does so); tests/tidy compares it with the modules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "artemis_py"
DOCUMENT: Final = ROOT / "ARCHITECTURE.md"
HEADING: Final = "## Every module\n"
_END: Final = re.compile(r"(?<=[.;?])\s|::\s")
_INTRODUCTION: Final = "Each with the first sentence of its docstring; `make docs` writes this list.\n"


def first_sentence(source: str) -> str:
    """What a module says of itself, in one line without the full stop."""
    words = " ".join((ast.get_docstring(ast.parse(source)) or "").split())
    return _END.split(words)[0].rstrip(".:;")


def index(modules: Iterable[Path]) -> str:
    """The section, for these files of the package; those without a word of their own (``__init__.py``) are left out."""
    folders: dict[str, list[str]] = {}
    for path in sorted(modules):
        if path.name != "__init__.py":
            folder = path.parent.relative_to(ROOT).as_posix()
            line = f"- `{path.name}` {first_sentence(path.read_text('utf-8'))}"
            folders.setdefault(folder, []).append(line)
    parts = [f"### {folder}\n\n" + "\n".join(lines) + "\n" for folder, lines in sorted(folders.items())]
    return "\n".join([HEADING, _INTRODUCTION, *parts])


def with_index(text: str, modules: Iterable[Path]) -> str:
    """The document with the list as it has to be; it is the last section."""
    return text.partition(HEADING)[0] + index(modules)


if __name__ == "__main__":
    files = [path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts]
    DOCUMENT.write_text(with_index(DOCUMENT.read_text("utf-8"), files), "utf-8")
