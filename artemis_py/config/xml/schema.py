"""Validates against the XSD: a fast yes or no, and if no, everything that is wrong in plain words."""

from __future__ import annotations

import functools
from io import BytesIO

from lxml import etree

from artemis_py.config.problems import Problems
from artemis_py.config.xml.source import Element, Source
from artemis_py.config.xml.xsd import schema_file


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
    from artemis_py.config.xml.structure import StructureCheck

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
