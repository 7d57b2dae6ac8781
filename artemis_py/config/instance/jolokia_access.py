"""Reads ``etc/jolokia-access.xml`` of an Artemis instance: which web pages may use Jolokia."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from artemis_py.config.problems import Problems, nearest
from artemis_py.config.tables.entities import Origin
from artemis_py.config.tables.web_access import WebAccess
from artemis_py.config.xml.source import Source, load_text, local_name, parse

_UNUSED: Final = {
    "remote": "let a firewall say which hosts reach the acceptor",
    "http": "permissions say who may use which method",
    "commands": "permissions of security-settings say who may do what",
    "allow": "permissions of security-settings say who may do what",
    "deny": "permissions of security-settings say who may do what",
    "filter": "there are only beans of the broker",
    "allow-object-name-patterns": "there are only beans of the broker",
}
"""The other parts of Jolokia's policy, and what there is instead."""
_PARTS: Final = ("allow-origin", "strict-checking", "ignore-scheme")


def read_jolokia_access(path: str, properties: Mapping[str, str], problems: Problems) -> WebAccess | None:
    """Read the file; None after adding an error."""
    source = Source(path)
    text = load_text(path, Origin(path, 0), problems)
    root = parse(text, path, properties, source, problems) if text is not None else None
    if root is None:
        return None
    source.root = root
    origins: list[str] = []
    is_strict = False
    for part in root:
        name = local_name(part)
        if name != "cors":
            advice = _UNUSED.get(name)
            reason = f"{name} is not used: {advice}" if advice else f"a policy of Jolokia has no {name}"
            problems.warning("left-out", source.origin(part), reason, suggestion=nearest(name, ("cors", *_UNUSED)))
            continue
        for rule in part:
            kind = local_name(rule)
            if kind == "allow-origin":
                origins.append((rule.text or "").strip().lower())
            elif kind == "strict-checking":
                is_strict = True
            elif kind == "ignore-scheme":
                problems.note("left-out", source.origin(rule), "ignore-scheme is not used: write *:// in allow-origin")
            else:
                problems.warning(
                    "left-out", source.origin(rule), f"cors has no {kind}", suggestion=nearest(kind, _PARTS)
                )
    return WebAccess(origins=tuple(filter(None, origins)), is_strict=is_strict, origin=source.origin(root))
