"""The rules about prose: links and citations lead somewhere, and ``make help`` knows every target."""

from __future__ import annotations

import re
from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|!\[[^\]]*\]\(\s*([^)\s]+)[^)]*\)")
CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`\n]*`")
EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
CITED = re.compile(r"(?<![\w./:-])[\w-]+(?:/[\w-]+)*/[\w-]+\.md\b")
TARGET = re.compile(r"^([a-z][\w-]*)\s*:(?![:=])(.*)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors that the headings of a Markdown text give, in the usual spelling: lower case, hyphens, no signs."""
    found: set[str] = set()
    for heading in HEADING.findall(CODE_BLOCK.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = sum(1 for other in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", other))
        found.add(f"{slug}-{count}" if count else slug)
    return found


def broken_links(path: Path, text: str) -> list[str]:
    """Links of a Markdown file that lead to no file, or to no heading of one; links to other hosts are not tried."""
    found: list[str] = []
    prose = CODE_SPAN.sub("", CODE_BLOCK.sub("", text))
    for match in LINK.finditer(prose):
        target = match[1] or match[2]
        if EXTERNAL.match(target):
            continue
        file_part, _, anchor = target.partition("#")
        file = path.parent / file_part if file_part else path
        if not file.exists():
            found.append(f"{path.name}: {target} does not exist")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            found.append(f"{path.name}: {target}: no such heading")
    return found


def missing_citations(root: Path, name: str, text: str) -> list[str]:
    """Documents that a text names by their path from the root, and that a reader of the project does not have."""
    return [
        f"{name}:{number}: {cited} is not in the project"
        for number, line in enumerate(text.splitlines(), 1)
        for cited in CITED.findall(line)
        if not (root / cited).exists()
    ]


def targets_without_help(makefile: str) -> list[str]:
    """Targets that people call, without the ``## text`` that ``make help`` shows."""
    return [name for name, rest in TARGET.findall(makefile) if "## " not in rest]


def pages_of_the_site(configuration: str) -> list[str]:
    """The pages that mkdocs.yml lists, in their order."""
    return re.findall(r"^ +- ([\w-]+\.md)$", configuration.partition("\nnav:\n")[2], re.MULTILINE)


def missing_modules(package: Path, text: str) -> list[str]:
    """Files that a table of folders names, and that are in none of a row's folders, nor in folders that it names."""
    found: list[str] = []
    for first, second in re.findall(r"^\| (`[\w.]+.*?) \| (.*) \|$", text, re.MULTILINE):
        folders = [package / folder for folder in re.findall(r"`(\w+(?:/\w+)*)/(?:…/)?`", first)]
        folders += [folder / inner for folder in folders for inner in re.findall(r"`(\w+)/`", second)]
        for name in re.findall(r"`(\w+)`", second):
            if not any((folder / end).exists() for folder in folders for end in (f"{name}.py", name)):
                found.append(f"{first}: {name} is not there")
    return found
