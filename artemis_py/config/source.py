"""From a configuration file and the files it includes to one tree, each element with the place where it was written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, final

from lxml import etree

from artemis_py.config.entities import Origin
from artemis_py.config.problems import Problems, shorten
from artemis_py.config.substitution import Substituted, substitute

FILE_LENGTH_MAX: Final = 16 * 1024 * 1024
CORE_NAMESPACE: Final = "urn:activemq:core"

Element = etree._Element


@final
class SourceFile:
    """One file: its name for messages, its text after substitution, and its original line numbers."""

    __slots__ = ("_rows", "_substituted", "name")

    def __init__(self, name: str, substituted: Substituted) -> None:
        self.name: Final = name
        self._substituted: Final = substituted
        self._rows: list[str] | None = None

    def line_of(self, element: Element) -> int:
        """Return the line on which the element's start tag begins (the parser knows only the one on which it ends)."""
        line = source_line(element)
        if element.attrib:
            if self._rows is None:
                self._rows = self._substituted.text.split("\n")
            tag = f"<{element.prefix}:{local_name(element)}" if element.prefix else f"<{local_name(element)}"
            first = min(line, len(self._rows))
            while first > 1 and tag not in self._rows[first - 1]:
                first -= 1
            line = first if tag in self._rows[first - 1] else line
        return self._substituted.original_line(line)


@final
class Source:
    """The whole tree. ``root`` is None when the main file could not be parsed."""

    __slots__ = ("file", "files", "root")

    def __init__(self, file: str) -> None:
        self.file: Final = file
        self.root: Element | None = None
        self.files: dict[Element, SourceFile] = {}

    def origin(self, element: Element) -> Origin:
        """Return the file and line of an element."""
        node: Element | None = element
        while node is not None:
            source_file = self.files.get(node)
            if source_file is not None:
                return Origin(source_file.name, source_file.line_of(element))
            node = node.getparent()
        return Origin(self.file, source_line(element))


def source_line(element: Any) -> int:
    """Return the line that the parser noted for an element: the one on which its start tag ends."""
    return int(element.sourceline or 1)


def local_name(element: Element) -> str:
    """Return an element's name without its namespace."""
    return etree.QName(element).localname


def load_text(path: str, asked_at: Origin, problems: Problems) -> str | None:
    """Return the text of a file, or None after adding a problem at ``asked_at``."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(FILE_LENGTH_MAX + 1)
    except OSError as error:
        problems.error(asked_at, f"{path} cannot be read: {error.strerror or error}")
        return None
    if len(data) > FILE_LENGTH_MAX:
        problems.error(asked_at, f"{path} is longer than {FILE_LENGTH_MAX // 1024**2} MiB")
        return None
    try:
        return data.decode(declared_encoding(data)).replace("\r\n", "\n")
    except (UnicodeDecodeError, LookupError) as error:
        problems.error(Origin(path, 1), f"{path} is not text in its encoding: {error}")
        return None


def declared_encoding(data: bytes) -> str:
    """Return the encoding that a byte-order mark or the XML declaration names; UTF-8 where there is neither."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return encoding
    head = data[: data.find(b"?>") + 1] if data.startswith(b"<?xml") else b""
    _, found, rest = head.partition(b"encoding")
    quoted = rest.strip(b" \t\r\n=")
    if not found or quoted[:1] not in (b'"', b"'"):
        return "utf-8"
    return quoted[1:].partition(quoted[:1])[0].decode("ascii", "replace")


def parse(text: str, file: str, properties: Mapping[str, str], source: Source, problems: Problems) -> Element | None:
    """Substitute and parse one file; note it in ``source``. Returns None after adding problems."""
    substituted = substitute(text, properties)
    for line, message in substituted.errors:
        problems.error(Origin(file, line), message)
    for line, message in substituted.warnings:
        problems.warning(Origin(file, line), message)
    doctype_line = find_doctype(substituted.text)
    if doctype_line:
        problems.error(
            Origin(file, substituted.original_line(doctype_line)),
            "a document type (<!DOCTYPE …>) is not allowed: entities could grow without end or read other files",
        )
    if substituted.errors or doctype_line:
        return None
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    try:
        root = etree.fromstring(substituted.text.encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError as error:
        _add_syntax_errors(error, parser, file, substituted, problems)
        return None
    source.files[root] = SourceFile(file, substituted)
    return root


def _add_syntax_errors(
    error: etree.XMLSyntaxError, parser: Any, file: str, substituted: Substituted, problems: Problems
) -> None:
    entries: list[tuple[int, str]] = [(entry.line, entry.message) for entry in parser.error_log]
    for line, message in entries or [(error.lineno or 0, error.msg or "no XML")]:
        name = substituted.marked_up.get(line)
        hint = f" (the value of ${{{name}}}, with '&' or '<' in it, stands on this line)" if name else ""
        origin = Origin(file, substituted.original_line(line))
        problems.error(origin, f"not well-formed XML: {shorten(message.strip())}{hint}")


def find_doctype(text: str) -> int:
    """Return the line of a document type declaration, 0 when there is none. It can only stand before the root."""
    place = 0
    while True:
        place = text.find("<", place)
        if place < 0:
            return 0
        for opening, closing in (("<?", "?>"), ("<!--", "-->")):
            if text.startswith(opening, place):
                end = text.find(closing, place + len(opening))
                break
        else:
            return text.count("\n", 0, place) + 1 if text.startswith("<!", place) else 0
        if end < 0:
            return 0
        place = end


def relative_to(including_file: str, href: str) -> str:
    """Return the path of an included file as seen from the file that includes it."""
    return os.path.normpath(os.path.join(os.path.dirname(including_file), href))
