"""Validation against the XSD: a fast yes or no, and, when it is no, everything that is wrong in plain words."""

from __future__ import annotations

import functools
from typing import Any

from lxml import etree

from artemis_py.config.entities import Origin
from artemis_py.config.problems import Problems
from artemis_py.config.source import Element, Source
from artemis_py.config.xsd import schema_file


@functools.cache
def fast_schema() -> etree.XMLSchema:
    """Return the compiled schema; compiling takes a few milliseconds."""
    return etree.XMLSchema(etree.parse(schema_file()))


def validate(source: Source, problems: Problems) -> set[tuple[Element, str]]:
    """Validate the tree of ``source``; return what is wrong: elements, each with the name of an attribute where it is
    only that, else with an empty text.
    """
    if source.root is None:
        return set()
    schema = fast_schema()
    if schema.validate(source.root):
        return set()
    from artemis_py.config.structure import StructureCheck

    check = StructureCheck(source, problems)
    check.run()
    if not check.flagged:
        # The slow check disagrees with the fast one: say what the fast one says rather than nothing.
        log: Any = schema.error_log
        for entry in log:
            problems.error(Origin(source.file, entry.line), entry.message)
    return check.flagged
