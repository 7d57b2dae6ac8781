"""The whole document: the main file, everything it includes, and the element ``core`` in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lxml import etree

from artemis_py.config.entities import Origin
from artemis_py.config.include import include_all
from artemis_py.config.problems import Problems
from artemis_py.config.source import CORE_NAMESPACE, Element, Source, load_text, local_name, parse

CONFIGURATION_NAMESPACE: Final = "urn:activemq"


def read_file(path: str, properties: Mapping[str, str], problems: Problems) -> Source:
    """Read a file with everything it includes. What is wrong is added to ``problems``; OSError is not raised."""
    source = Source(path)
    text = load_text(path, Origin(path, 0), problems)
    if text is not None:
        source.root = parse(text, path, properties, source, problems)
    if source.root is not None:
        include_all(source.root, source, properties, problems)
    return source


def read_text(text: str, file: str, properties: Mapping[str, str], problems: Problems) -> Source:
    """Like :func:`read_file` for a text that is already at hand; ``file`` is its name in messages and for includes."""
    source = Source(file)
    source.root = parse(text, file, properties, source, problems)
    if source.root is not None:
        include_all(source.root, source, properties, problems)
    return source


def core_of(source: Source, problems: Problems) -> Element | None:
    """Return the element ``core``, or None after saying what stands in its place."""
    root: Any = source.root
    if root is None:
        return None
    core: Element | None = next(root.iter(f"{{{CORE_NAMESPACE}}}core"), None)
    if root.tag == f"{{{CONFIGURATION_NAMESPACE}}}configuration" and core is not None:
        for jms in root.iterchildren("{*}jms"):
            problems.warning(
                source.origin(jms), "the element jms is not read; declare its queues and topics in addresses"
            )
        return core
    expected = (
        f'<configuration xmlns="{CONFIGURATION_NAMESPACE}"> with <core xmlns="{CORE_NAMESPACE}"> inside is expected'
    )
    if core is None and root.tag == f"{{{CONFIGURATION_NAMESPACE}}}configuration":
        lonely = next((each for each in root.iter() if local_name(each) == "core"), None)
        if lonely is None:
            problems.error(source.origin(root), f"there is no element core; {expected}")
        else:
            namespace = etree.QName(lonely).namespace or "no namespace"
            problems.error(source.origin(lonely), f"core is in {namespace}; {expected}")
    else:
        problems.error(source.origin(root), f"the outermost element is not right; {expected}", value=root.tag)
    return None
