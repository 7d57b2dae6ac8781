"""The whole document: the main file, everything it includes, and the element ``core`` in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

from artemis_py.config.problems import Problems
from artemis_py.config.tables.entities import Origin
from artemis_py.config.xml.include import include_all
from artemis_py.config.xml.source import CORE_NAMESPACE, Element, Source, load_text, local_name, parse

CONFIGURATION_NAMESPACE: Final = "urn:activemq"

# Artemis looks for the core element in its namespace and does not mind that of the root (2.44, asked).
_ROOTS: Final = (
    f"{{{CONFIGURATION_NAMESPACE}}}configuration",
    f"{{{CORE_NAMESPACE}}}configuration",
    "configuration",
)
_EXPECTED: Final = (
    f'<configuration xmlns="{CONFIGURATION_NAMESPACE}"> with <core xmlns="{CORE_NAMESPACE}"> inside is expected'
)


def read_file(path: str, properties: Mapping[str, str], problems: Problems) -> Source:
    """Read a file with everything it includes. Problems are added to ``problems``; OSError is not raised."""
    source = Source(path)
    text = load_text(path, Origin(path, 0), problems)
    if text is not None:
        source.root = parse(text, path, properties, source, problems)
    if source.root is not None:
        include_all(source.root, source, properties, problems)
    return source


def read_text(text: str, file: str, properties: Mapping[str, str], problems: Problems) -> Source:
    """Like :func:`read_file` for a given text; ``file`` is its name in messages and for includes."""
    source = Source(file)
    source.root = parse(text, file, properties, source, problems)
    if source.root is not None:
        include_all(source.root, source, properties, problems)
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
