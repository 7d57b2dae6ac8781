"""Reads ``artemis.profile`` for the Java system properties in it, which ``${name}`` in the other files refers to.

The file is a shell script that sets variables. No shell runs here: only plain assignments are read, in the order of the
file, whatever stands around them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from artemis_py.config.problems import Problems
from artemis_py.config.tables.entities import Origin
from artemis_py.config.xml.source import load_text

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_VALUE_LENGTH_MAX: Final = 65536
_HOME: Final = "artemis.home"
_WITH_PROPERTIES: Final = ("JAVA_ARGS", "ARTEMIS_CLUSTER_PROPS", "JAVA_ARGS_APPEND", "DEBUG_ARGS")


def read_profile(path: str, variables: Mapping[str, str], problems: Problems) -> dict[str, str]:
    """Return the properties that the file passes to Java (``-Dname=value``), and ``artemis.home``, which Artemis' start
    script makes of a variable in it. ``variables`` are the shell's before it.

    A file that cannot be read as said is a warning: the properties in it are missing, and a placeholder that wants one
    says so itself.
    """
    text = load_text(path, Origin(path, 0), problems)
    if text is None:
        return {}
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        problems.warning("instance", Origin(path, 0), f"its properties are not read: {str(error).lower()}")
        return {}
    known = dict(variables)
    for word in words:
        found = _ASSIGNMENT.fullmatch(word)
        if found is not None:
            known[found[1]] = _expanded(found[2], known)
    home = {_HOME: known["ARTEMIS_HOME"]} if "ARTEMIS_HOME" in known else {}
    return {**home, **_properties_in(" ".join(known.get(name, "") for name in _WITH_PROPERTIES))}


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Replace variables by their values; an unknown one by nothing, as a shell does. The result stays short."""
    return _VARIABLE.sub(lambda each: known.get(each[1] or each[2], ""), text)[:_VALUE_LENGTH_MAX]


def _properties_in(arguments: str) -> dict[str, str]:
    properties: dict[str, str] = {}
    for word in arguments.split():
        if word.startswith("-D"):
            name, _, value = word[2:].partition("=")
            properties[name] = value
    return properties
