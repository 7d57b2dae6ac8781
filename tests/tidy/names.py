"""The rule about the distribution's name: nobody is told to install somebody else's package.

What the public index calls ``artemis_py`` (``artemis-py``, ``Artemis.Py``: it does not tell them apart) is not this
project, and this project's own name is not there yet. So everything is installed from a checkout or from a wheel.
"""

from __future__ import annotations

import re

DISTRIBUTION = "artemis-py-broker"
_NAME = r"artemis[-_.]py(?:[-_.]broker)?"
_EXTRA = r"(?:\[[\w, ]*\])?"
WITH_EXTRA = re.compile(rf"(?<![\w./-]){_NAME}\[[\w, ]+\]", re.IGNORECASE)
INSTALLED = re.compile(
    r"\b(?:install|add|download|wheel|uvx|run --with|requires?)\b"
    rf"[^\n`()]*?[\s'\"=]{_NAME}{_EXTRA}(?=[\s'\"`<>=!~,;)]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_OF_A_WHEEL = re.compile(r"\buvx --from [^\s`]+\.whl artemis-py\b")
"""The command of a package that is named by its file."""
_TOOLS = re.compile(r"\b(?:pip3?|pipx|uv|uvx|poetry|conda|PIP)\b")


def told_from_an_index(name: str, text: str) -> list[str]:
    """Lines that install the package by a name, which an index would answer with whatever it calls so."""
    found: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        other = _OF_A_WHEEL.sub("", line)
        by_name = _TOOLS.search(other) is not None and INSTALLED.search(other) is not None
        if by_name or WITH_EXTRA.search(line) is not None:
            found.append(f"{name}:{number}: {line.strip()}")
    return found
