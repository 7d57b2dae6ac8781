"""The whole document: the main file, everything it includes, the element ``core`` in it, and whether that follows the
XSD.

A relative ``href`` of an include is resolved against the including file. Artemis resolves it against the working
directory of its process; if a file exists there too, a note says so. Includes may be nested and have a fallback. They
read only files, never the network.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from lxml import etree

from artemis_py.config.problems import Problems
from artemis_py.config.tables.declarations import Origin
from artemis_py.config.xml.source import (
    CORE_NAMESPACE,
    Element,
    Source,
    load_text,
    local_name,
    parse,
    relative_to,
    schema_file,
)

_CONFIGURATION_NAMESPACE: Final = "urn:activemq"

# Artemis looks for the core element in its namespace and does not mind that of the root (2.44, asked).
_ROOTS: Final = (
    f"{{{_CONFIGURATION_NAMESPACE}}}configuration",
    f"{{{CORE_NAMESPACE}}}configuration",
    "configuration",
)
_EXPECTED: Final = (
    f'<configuration xmlns="{_CONFIGURATION_NAMESPACE}"> with <core xmlns="{CORE_NAMESPACE}"> inside is expected'
)


def read_file(path: str, properties: Mapping[str, str], problems: Problems) -> Source:
    """Read a file with everything it includes. Problems are added to ``problems``; OSError is not raised."""
    source = Source(path)
    text = load_text(path, Origin(path, 0), problems)
    if text is not None:
        source.root = parse(text, path, properties, source, problems)
    if source.root is not None:
        _include_all(source.root, source, properties, problems)
    return source


def read_text(text: str, file: str, properties: Mapping[str, str], problems: Problems) -> Source:
    """Like :func:`read_file` for a given text; ``file`` is its name in messages and for includes."""
    source = Source(file)
    source.root = parse(text, file, properties, source, problems)
    if source.root is not None:
        _include_all(source.root, source, properties, problems)
    return source


def core_of(source: Source, problems: Problems) -> Element | None:
    """Return the element ``core``, or None after reporting what is there instead. Of several, the first counts."""
    root: Any = source.root
    if root is None:
        return None
    if root.tag not in _ROOTS:
        problems.error(source.origin(root), f"wrong root element; {_EXPECTED}", value=root.tag)
        return None
    cores = list(root.iter(f"{{{CORE_NAMESPACE}}}core"))
    if not cores:
        _say_what_stands_there(source, root, problems)
        return None
    for jms in root.iterchildren("{*}jms"):
        problems.warning(
            "not-read", source.origin(jms), "the element jms is ignored; declare its queues and topics in addresses"
        )
    for another in cores[1:]:
        problems.warning(
            "not-read",
            source.origin(another),
            f"a second core is ignored, as in Artemis; move its content into the one at {source.origin(cores[0])}",
        )
    first: Element = cores[0]
    return first


def _say_what_stands_there(source: Source, root: Any, problems: Problems) -> None:
    lonely = next((each for each in root.iter(etree.Element) if local_name(each) == "core"), None)
    if lonely is None:
        problems.error(source.origin(root), f"there is no element core; {_EXPECTED}")
    else:
        namespace = etree.QName(lonely).namespace or "no namespace"
        problems.error(source.origin(lonely), f"core is in {namespace}; {_EXPECTED}")


# ---- xi:include ----------------------------------------------------------------------------------

_XINCLUDE: Final = "http://www.w3.org/2001/XInclude"
_DEPTH_MAX: Final = 16
_INCLUDES_MAX: Final = 1000
_INCLUDED_LENGTH_MAX: Final = 16 * 1024 * 1024
"""Maximum length of all included files together, in characters."""


def _include_all(root: Element, source: Source, properties: Mapping[str, str], problems: Problems) -> None:
    """Replace every ``xi:include`` below ``root``, which is in ``source``; problems are added to ``problems``."""
    _Includer(source, properties, problems).expand(root, (os.path.realpath(source.file),), source.file)


class _Includer:
    def __init__(self, source: Source, properties: Mapping[str, str], problems: Problems) -> None:
        self._source = source
        self._properties = properties
        self._problems = problems
        self._count = 0
        self._length = 0

    def expand(self, root: Element, opened: tuple[str, ...], file: str) -> None:
        """Replace the includes below ``root``; ``opened`` are the real paths of the files that lead to it."""
        for include in list(root.iter(f"{{{_XINCLUDE}}}include")):
            if _inside_fallback(include, root):
                continue
            self._replace(include, opened, file)

    def _replace(self, include: Element, opened: tuple[str, ...], file: str) -> None:
        origin = self._source.origin(include)
        self._count += 1
        if self._count > _INCLUDES_MAX or len(opened) > _DEPTH_MAX:
            if self._count <= _INCLUDES_MAX + 1:
                self._problems.error(origin, "too many files are included")
            _put(include, [])
            return
        path = self._path(include, origin, file)
        if path is None:
            _put(include, [])
            return
        fallback = include.find(f"{{{_XINCLUDE}}}fallback")
        if not os.path.exists(path) and fallback is not None:
            self._use_fallback(include, fallback, opened, file)
            return
        real = os.path.realpath(path)
        if real in opened:
            self._problems.error(origin, f"{path} includes itself")
            _put(include, [])
            return
        self._note_other_place(include, origin, path)
        included = self._read(path, origin, (*opened, real))
        _put(include, [] if included is None else [included])

    def _path(self, include: Element, origin: Origin, file: str) -> str | None:
        href = include.get("href", "")
        if include.get("parse", "xml") != "xml" or include.get("xpointer"):
            self._problems.error(
                origin, ("xi:include includes whole XML files only; parse and xpointer are not supported")
            )
            return None
        parts = urlsplit(href)
        if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
            self._problems.error(origin, "xi:include reads files only", value=href, allowed="a path, or file:///path")
            return None
        if not parts.path:
            self._problems.error(origin, "xi:include needs the attribute href with the path of a file", value=href)
            return None
        return relative_to(file, unquote(parts.path))

    def _note_other_place(self, include: Element, origin: Origin, path: str) -> None:
        href = unquote(urlsplit(include.get("href", "")).path)
        if os.path.isabs(href) or not os.path.exists(href) or os.path.realpath(href) == os.path.realpath(path):
            return
        self._problems.note(
            "include-place",
            origin,
            f"{href} also exists in the working directory {os.getcwd()}, where Artemis would read it; this broker "
            f"reads {path}, because a path is relative to the including file",
        )

    def _read(self, path: str, origin: Origin, opened: tuple[str, ...]) -> Element | None:
        text = load_text(path, origin, self._problems)
        if text is None:
            return None
        self._length += len(text)
        if self._length > _INCLUDED_LENGTH_MAX:
            self._problems.error(origin, f"the included files together exceed {_INCLUDED_LENGTH_MAX} bytes")
            return None
        root = parse(text, path, self._properties, self._source, self._problems)
        if root is None:
            return None
        if etree.QName(root).namespace != CORE_NAMESPACE:
            self._problems.error(
                self._source.origin(root),
                f'an included file must have xmlns="{CORE_NAMESPACE}" on its root element',
                value=root.tag,
            )
            return None
        self.expand(root, opened, path)
        return root

    def _use_fallback(self, include: Element, fallback: Element, opened: tuple[str, ...], file: str) -> None:
        self.expand(fallback, opened, file)
        _put(include, list(fallback))


def _inside_fallback(element: Element, root: Element) -> bool:
    return element is not root and any(
        each.tag == f"{{{_XINCLUDE}}}fallback" for each in element.iterancestors() if each is not root
    )


def _put(include: Element, elements: list[Element]) -> None:
    """Replace an include by elements; the text after the include stays."""
    parent = include.getparent()
    if parent is None:
        return
    tail = include.tail
    place = parent.index(include)
    parent.remove(include)
    for offset, element in enumerate(elements):
        element.tail = None
        parent.insert(place + offset, element)
    if tail and tail.strip():
        _append_text(parent, place + len(elements), tail)


def _append_text(parent: Element, place: int, text: str) -> None:
    """Append text in front of the child at ``place``."""
    if place == 0:
        parent.text = (parent.text or "") + text
    else:
        before = parent[place - 1]
        before.tail = (before.tail or "") + text


# ---- the XSD -------------------------------------------------------------------------------------


@functools.cache
def fast_schema() -> etree.XMLSchema:
    """Return the compiled schema; compiling takes a few milliseconds."""
    return etree.XMLSchema(etree.parse(schema_file()))


def validate(source: Source, core: Element, problems: Problems) -> set[tuple[Element, str]]:
    """Validate the element ``core`` of ``source``; what surrounds it is not checked. Returns what is wrong: elements,
    each with the name of the wrong attribute, or an empty text for the element itself.
    """
    if _follows(core):
        return set()
    from artemis_py.config.xml.schema_errors import StructureCheck

    check = StructureCheck(source, core, problems)
    check.run()
    if not check.flagged:
        # The slow check disagrees with the fast one. Its own words say more than nothing, but they are not ours.
        problems.error(source.origin(core), "core violates the schema, but the place was not found; please report this")
    return check.flagged


def _follows(core: Element) -> bool:
    """Does it follow the schema? The text is parsed again for this: when validating a tree, libxml2 counts all
    preceding siblings for the path of each error, so forty thousand errors would take half a minute.
    """
    text = BytesIO(etree.tostring(core, with_tail=False))
    try:
        for _, element in etree.iterparse(text, schema=fast_schema(), huge_tree=True, resolve_entities=False):
            element.clear()  # a second tree would be as large as the first
    except etree.XMLSyntaxError:
        return False
    return True
