"""``<xi:include href="…"/>``: other files as parts of a configuration.

A relative ``href`` is resolved against the including file. Artemis resolves it against the working directory of its
process; if a file exists there too, a note says so. Includes may be nested and have a fallback. They read only files,
never the network.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from lxml import etree

from artemis_py.config.problems import Problems
from artemis_py.config.tables.entities import Origin
from artemis_py.config.xml.source import CORE_NAMESPACE, Element, Source, load_text, parse, relative_to

NAMESPACE: Final = "http://www.w3.org/2001/XInclude"
DEPTH_MAX: Final = 16
INCLUDES_MAX: Final = 1000
INCLUDED_LENGTH_MAX: Final = 16 * 1024 * 1024
"""Maximum length of all included files together, in characters."""


def include_all(root: Element, source: Source, properties: Mapping[str, str], problems: Problems) -> None:
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
        for include in list(root.iter(f"{{{NAMESPACE}}}include")):
            if _inside_fallback(include, root):
                continue
            self._replace(include, opened, file)

    def _replace(self, include: Element, opened: tuple[str, ...], file: str) -> None:
        origin = self._source.origin(include)
        self._count += 1
        if self._count > INCLUDES_MAX or len(opened) > DEPTH_MAX:
            if self._count <= INCLUDES_MAX + 1:
                self._problems.error(origin, "too many files are included")
            _put(include, [])
            return
        path = self._path(include, origin, file)
        if path is None:
            _put(include, [])
            return
        fallback = include.find(f"{{{NAMESPACE}}}fallback")
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
        if self._length > INCLUDED_LENGTH_MAX:
            self._problems.error(origin, f"the included files together exceed {INCLUDED_LENGTH_MAX} bytes")
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
        each.tag == f"{{{NAMESPACE}}}fallback" for each in element.iterancestors() if each is not root
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
