"""``python -m tools.docs`` writes the pages of docs/ that are made of the tables in the code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.docs import configuration, operations, reload, why

DOCS: Final = Path(__file__).resolve().parent.parent.parent / "docs"
PAGES: Final = {
    "configuration.md": configuration.page,
    "operations.md": operations.page,
    "reload.md": reload.page,
    "why.md": why.page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), "utf-8")
