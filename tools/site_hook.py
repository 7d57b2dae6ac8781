"""A hook of MkDocs for ``make site``: takes in the pages that stand outside docs/, and the links that lead out of it.

README becomes the first page; ARCHITECTURE and others are pages, too. A link to a file that is no page (an alert
rule, a manifest) becomes the path of that file in a checkout.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parents[1]
OUTSIDE: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
}
_LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_PICTURE: Final = re.compile(r"(!\[[^\]]*\]\()docs/")
_CODE_BLOCK: Final = re.compile(r"(^```.*?^```\s*$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by MkDocs: adds the pages that stand outside docs/."""
    for name, page in OUTSIDE.items():
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, page, content=with_links_of_the_site(text, PurePosixPath())))
    return files


def on_page_markdown(markdown: str, *, page: object, config: MkDocsConfig, files: Files) -> str:
    """Called by MkDocs for each page: makes links right that lead out of docs/."""
    return with_links_of_the_site(markdown, PurePosixPath("docs"))


def with_links_of_the_site(text: str, folder: PurePosixPath) -> str:
    """The text of a file in this folder of the project, with the links that its page in the site needs."""
    parts = _CODE_BLOCK.split(text)
    parts[::2] = [_LINK.sub(lambda found: _link(found[1], found[2], folder), part) for part in parts[::2]]
    return _PICTURE.sub(r"\1", "".join(parts))


def _link(words: str, target: str, folder: PurePosixPath) -> str:
    file, mark, anchor = target.partition("#")
    unchanged = f"[{words}]({target})"
    if not file or re.match(r"[a-z]+:", file):
        return unchanged
    path = _in_project(folder, file)
    if path in OUTSIDE:
        return f"[{words}]({OUTSIDE[path]}{mark}{anchor})"
    if path.startswith("docs/"):
        return f"[{words}]({path.removeprefix('docs/')}{mark}{anchor})"
    if folder.parts or (ROOT / path).exists():
        return f"`{path}`" if words.strip("`") == path else f"{words} (`{path}`)"
    return unchanged


def _in_project(folder: PurePosixPath, file: str) -> str:
    """The path from the top of the project: ``docs`` and ``../README.md`` are README.md."""
    path = folder
    for part in PurePosixPath(file).parts:
        path = path.parent if part == ".." else path / part
    return str(path)
