"""Reads a configuration file, and parses its text into a tree in which each element knows its line.

``${name:default}`` is replaced in the text, before it is parsed. As in Artemis, the name ends at the first colon and
the placeholder at the first ``}``, and both halves are trimmed. The value is inserted as it is and scanned again, so
``${a:${b}}`` works. Without a value and a default, nothing is inserted. Unlike in Artemis, a value that refers to its
own name is an error instead of an endless loop, and each line of the result keeps its original line number.
"""

from __future__ import annotations

import os
import re
import stat
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from lxml import etree

from artemis_py.config.problems import Problems
from artemis_py.config.tables.declarations import Origin

TEXT_LENGTH_MAX: Final = 16 * 1024 * 1024
RESCANS_MAX: Final = 10_000


@final
@dataclass(eq=False, repr=False)
class Substituted:
    """The text after substitution.

    ``lines[n]`` is the original line of line n + 1; it is no list, because a file may have millions of lines.
    ``errors`` and ``warnings`` are pairs of original line and text. ``marked_up`` maps a line of the result to the name
    whose value inserted ``&`` or ``<``.
    """

    text: str
    lines: Sequence[int]
    errors: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    marked_up: dict[int, str] = field(default_factory=dict)

    def original_line(self, line: int) -> int:
        """Return the line of the file for a line of the text; both count from 1."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else line


def substitute(text: str, properties: Mapping[str, str]) -> Substituted:
    """Replace every placeholder in ``text``. Never raises; errors are in the result."""
    if "${" not in text:
        return Substituted(text, range(1, text.count("\n") + 2))
    return _Substitution(text, properties).run()


@final
class _Substitution:
    """One run over a text.

    Text before ``_own_start`` was inserted; text after it is from the file. This border and the end of the value being
    scanned are stored as distances from the end of the text, which insertions before them do not change.
    """

    def __init__(self, text: str, properties: Mapping[str, str]) -> None:
        self._text = text
        self._place = 0
        self._properties = properties
        self._line = 1
        self._own_length = len(text)
        self._open_names: list[tuple[str, int]] = []
        self._parts: list[str] = []
        self._length = 0
        self._rescans = 0
        self._in_comment = False
        self._unset: set[str] = set()
        self._lines = array("l", [1])
        self._result = Substituted("", self._lines)

    def run(self) -> Substituted:
        while (start := self._text.find("${", self._place)) >= 0:
            end = self._text.find("}", start + 2)
            self._emit_until(start)
            if end < 0:
                self._result.warnings.append((self._line, "'${' without '}': nothing after it is replaced"))
                break
            if not self._replace(self._text[start + 2 : end], end + 1):
                break
        self._emit_until(len(self._text))
        self._result.text = "".join(self._parts)
        return self._result

    def _replace(self, inside: str, after: int) -> bool:
        """Replace the placeholder at the current place, which ends before ``after``; False: give up."""
        distance = len(self._text) - self._place
        while self._open_names and self._open_names[-1][1] >= distance:
            self._open_names.pop()
        name, _, default = (part.strip() for part in inside.partition(":"))
        value = self._properties.get(name)
        found = value is not None
        if value is None:
            value = default
            if ":" not in inside and not self._in_comment and name not in self._unset:
                self._unset.add(name)
                self._result.warnings.append(
                    (self._line, f"${{{name}}} is not set and has no default; it is replaced by nothing")
                )
        elif any(open_name == name for open_name, _ in self._open_names):
            self._result.errors.append((self._line, f"${{{name}}} refers to itself"))
            value = ""
        self._line += self._text.count("\n", max(self._place, self._own_start), after)
        self._place = after
        if "${" in value:
            return self._rescan(value, name if found else None)
        if "&" in value or "<" in value:
            self._result.marked_up[len(self._result.lines)] = name
        self._append(value, own_length=0)
        return self._within_limits()

    def _rescan(self, value: str, found_name: str | None) -> bool:
        """Insert the value before the rest and continue there; False: give up."""
        self._rescans += 1
        rest = self._text[self._place :]
        self._own_length = min(self._own_length, len(rest))
        if found_name is not None:
            self._open_names.append((found_name, len(rest)))
        self._text, self._place = value + rest, 0
        return self._within_limits()

    def _within_limits(self) -> bool:
        within = self._rescans <= RESCANS_MAX and self._length + len(self._text) - self._place <= TEXT_LENGTH_MAX
        if not within:
            self._result.errors.append((self._line, "the placeholders make the text too long"))
        return within

    @property
    def _own_start(self) -> int:
        return len(self._text) - self._own_length

    def _emit_until(self, end: int) -> None:
        """Append the text from the current place to ``end``."""
        text = self._text[self._place : end]
        self._append(text, own_length=max(0, end - max(self._place, self._own_start)))
        self._place = end

    def _append(self, text: str, *, own_length: int) -> None:
        """Append to the result; the last ``own_length`` characters are from the file, those before were inserted."""
        if not text:
            return
        self._parts.append(text)
        self._length += len(text)
        border = len(text) - own_length
        lines = self._lines
        lines.extend([self._line] * text.count("\n", 0, border))
        own_lines = text.count("\n", border)
        lines.extend(range(self._line + 1, self._line + own_lines + 1))
        self._line += own_lines
        opened, closed = text.rfind("<!--"), text.rfind("-->")
        if opened != closed:
            self._in_comment = opened > closed


# ---- files -----------------------------------------------------------------------------------------------------------

FILE_LENGTH_MAX: Final = 16 * 1024 * 1024
_TAG_LENGTH_MAX: Final = 65536
"""How far back to search for the beginning of a start tag."""
CORE_NAMESPACE: Final = "urn:activemq:core"
_SCHEMA: Final = "artemis-py.xsd"

Element = etree._Element


def schema_file() -> str:
    """Return the path of the XSD: inside the installed package, or next to it in a checkout."""
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    installed = os.path.join(package, "_schema", _SCHEMA)
    return installed if os.path.exists(installed) else os.path.join(os.path.dirname(package), "schema", _SCHEMA)


@final
class SourceFile:
    """One file: its name for messages, its text after substitution, and its original line numbers."""

    __slots__ = ("_line_starts", "_substituted", "name")

    def __init__(self, name: str, substituted: Substituted) -> None:
        self.name: Final = name
        self._substituted: Final = substituted
        self._line_starts: array[int] | None = None

    def line_of(self, element: Element) -> int:
        """Return the line where the element's start tag begins (the parser knows only where it ends)."""
        line = source_line(element)
        if element.attrib:
            line = self._first_line(element, line)
        return self._substituted.original_line(line)

    def _first_line(self, element: Element, last_line: int) -> int:
        text = self._substituted.text
        starts = self._line_starts
        if starts is None:
            starts = self._line_starts = array("l", [0])
            starts.extend(found.end() for found in re.finditer("\n", text))
        end = starts[last_line] if last_line < len(starts) else len(text)
        tag = f"<{element.prefix}:{local_name(element)}" if element.prefix else f"<{local_name(element)}"
        place = text.rfind(tag, max(end - _TAG_LENGTH_MAX, 0), end)
        return bisect_right(starts, place) if place >= 0 else last_line


@final
class Source:
    """The whole tree. ``root`` is None if the main file could not be parsed."""

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
    """Return the line that the parser noted for an element: where its start tag ends."""
    return int(element.sourceline or 1)


def local_name(element: Element) -> str:
    """Return an element's name without its namespace."""
    return etree.QName(element).localname


def load_text(path: str, asked_at: Origin, problems: Problems) -> str | None:
    """Return the text of a regular file, or None after adding a problem at ``asked_at``, or at the line in the file."""
    try:
        data = read_regular_file(path)
    except OSError as error:
        problems.error(asked_at, f"{path} cannot be read: {error.strerror or error}")
        return None
    if data is None:
        problems.error(asked_at, f"{path} is not a regular file; pipes, devices and folders are not read")
        return None
    if len(data) > FILE_LENGTH_MAX:
        problems.error(asked_at, f"{path} is larger than {FILE_LENGTH_MAX // 1024**2} MiB; split it, or check its name")
        return None
    encoding = declared_encoding(data)
    try:
        return data.decode(encoding).replace("\r\n", "\n")
    except LookupError:
        problems.error(Origin(path, 1), f"{path} declares an unknown encoding", value=encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.end][:4])
        problems.error(
            Origin(path, line),
            f"this line is not valid {encoding}: {error.reason}",
            value=wrong,
            allowed=f"text in {encoding}",
        )
    return None


def read_regular_file(path: str) -> bytes | None:
    """Return at most one byte more than FILE_LENGTH_MAX; None if it is not a regular file (a pipe would never end).
    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as stream:
        return stream.read(FILE_LENGTH_MAX + 1)


def declared_encoding(data: bytes) -> str:
    """Return the encoding that a byte-order mark or the XML declaration names; UTF-8 if there is neither."""
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
        problems.warning("placeholder", Origin(file, line), message)
    doctype_line = find_doctype(substituted.text)
    if doctype_line:
        problems.error(
            Origin(file, substituted.original_line(doctype_line)),
            "a document type (<!DOCTYPE …>) is not allowed: entities could expand without limit or read other files",
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
    entries = [(entry.line, in_our_words(entry.type_name, entry.message)) for entry in _causes(parser.error_log)]
    for line, message in entries or [(error.lineno or 0, "it contains no XML")]:
        name = substituted.marked_up.get(line)
        hint = f" (the value of ${{{name}}}, which contains '&' or '<', is on this line)" if name else ""
        origin = Origin(file, substituted.original_line(line))
        problems.error(origin, f"not well-formed XML: {message}{hint}")


def _causes(entries: Iterable[Any]) -> Iterator[Any]:
    """Without the mismatches that follow from one before: an element without its end takes that of the element around
    it, which then takes that of the next, up to the root.
    """
    taken = None
    for entry in entries:
        mismatch = _MISMATCH.match(entry.message)
        if mismatch is None or mismatch[1] != taken:
            yield entry
        taken = mismatch[3] if mismatch is not None else taken


def find_doctype(text: str) -> int:
    """Return the line of a document type declaration, or 0. It can only precede the root element."""
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
    """Return the path of an included file, relative to the including file."""
    return os.path.normpath(os.path.join(os.path.dirname(including_file), href))


# ---- libxml2's errors in our words ---------------------------------------------------------------

_MISMATCH: Final = re.compile(r"Opening and ending tag mismatch: (\S+) line (\d+) and (\S+)")
_NAME: Final = re.compile(r"(?:Entity|Attribute|Namespace prefix) '?([^\s']+)'?")

_WORDS: Final = {
    "ERR_ATTRIBUTE_NOT_FINISHED": "the value of an attribute has no closing quote",
    "ERR_ATTRIBUTE_NOT_STARTED": "the value of an attribute must be in quotes",
    "ERR_ATTRIBUTE_REDEFINED": "the attribute {name} appears twice in one element",
    "ERR_ATTRIBUTE_WITHOUT_VALUE": "an attribute has no value",
    "ERR_CDATA_NOT_FINISHED": "a <![CDATA[ has no ]]>",
    "ERR_COMMENT_NOT_FINISHED": "a comment has no -->",
    "ERR_DOCUMENT_EMPTY": "it has no element",
    "ERR_DOCUMENT_END": "there is content after the end of the root element",
    "ERR_ENTITYREF_SEMICOL_MISSING": "an '&' without ';' (write &amp; for the character itself)",
    "ERR_EQUAL_REQUIRED": "a '=' is missing between an attribute and its value",
    "ERR_GT_REQUIRED": "a '>' is missing at the end of a tag",
    "ERR_HYPHEN_IN_COMMENT": "'--' is not allowed inside a comment",
    "ERR_INVALID_CHAR": "a character that XML does not allow",
    "ERR_INVALID_CHARREF": "a &#…; for a character that XML does not allow",
    "ERR_INVALID_ENCODING": "these bytes are not valid in the file's encoding",
    "ERR_LT_IN_ATTRIBUTE": "a '<' in the value of an attribute (write &lt;)",
    "ERR_LTSLASH_REQUIRED": "the end tag of an element is missing",
    "ERR_NAME_REQUIRED": "a name is missing after '<' or '&' (write &lt; or &amp; for the characters themselves)",
    "ERR_NAME_TOO_LONG": "a name is too long",
    "ERR_RESOURCE_LIMIT": (
        "elements are nested too deeply, or a text or a name is too long: at most 256 levels, 10,000,000 "
        "characters in a text or value, 50,000 in a name"
    ),
    "ERR_SPACE_REQUIRED": "a space is missing between two attributes",
    "ERR_TAG_NOT_FINISHED": "the file ends before its last element does",
    "ERR_UNDECLARED_ENTITY": "&{name}; is undefined: only &amp; &lt; &gt; &quot; and &apos; are known",
    "ERR_UNKNOWN_VERSION": "the XML declaration names a version that is not 1.0",
    "ERR_VERSION_MISSING": 'the XML declaration has no version="1.0"',
    "ERR_XMLDECL_NOT_FINISHED": "the XML declaration has no ?>",
    "ERR_MISPLACED_CDATA_END": "']]>' is not allowed in text (write ]]&gt;)",
    "ERR_PI_NOT_FINISHED": "a <? has no ?>",
    "ERR_RESERVED_XML_NAME": "<?xml …?> is allowed only at the very beginning",
    "ERR_ENCODING_NAME": "the XML declaration names an unknown encoding",
    "ERR_INVALID_DEC_CHARREF": "a &#…; that is not a number",
    "ERR_INVALID_HEX_CHARREF": "a &#x…; that is not a hexadecimal number",
    "ERR_PI_NOT_STARTED": "a name is missing after '<?'",
    "ERR_STANDALONE_VALUE": "standalone in the XML declaration is neither yes nor no",
    "ERR_STRING_NOT_CLOSED": "a text in the XML declaration has no closing quote",
    "NS_ERR_ATTRIBUTE_REDEFINED": "the attribute {name} appears twice in one element",
    "NS_ERR_QNAME": "a name with a colon in the wrong place",
    "NS_ERR_UNDEFINED_NAMESPACE": "the prefix {name} has no namespace (xmlns:{name}=…)",
    "NS_ERR_XML_NAMESPACE": "a prefix has an empty namespace, or one that XML keeps for itself",
    "WAR_NS_URI": "a namespace is not a URI",
    "WAR_UNDECLARED_ENTITY": "&{name}; is undefined: only &amp; &lt; &gt; &quot; and &apos; are known",
}


def in_our_words(kind: str, message: str) -> str:
    """Return the meaning of an entry of libxml2's log; a kind without words of ours is given by its name."""
    mismatch = _MISMATCH.match(message)
    if mismatch is not None and mismatch[3].startswith("unpars"):  # the parser's own word for what it cannot read
        return f"<{mismatch[1]}> of line {mismatch[2]} is closed by something that is not an end tag"
    if mismatch is not None:
        return f"<{mismatch[1]}> of line {mismatch[2]} is closed by </{mismatch[3]}>"
    words = _WORDS.get(kind)
    if words is None:
        return f"something that XML does not allow ({kind})"
    name = _NAME.search(message)
    return words.replace("{name}", name[1] if name else "a name")
