"""Looks into ``etc/management.xml`` of an Artemis instance, which has no effect here, and tells what does its work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from artemis_py.config.draft import Draft
from artemis_py.config.problems import Problems
from artemis_py.config.tables.entities import Origin
from artemis_py.config.xml.source import Element, Source, load_text, parse

_GRANTS: Final = {"view", "edit"}
_READING: Final = ("list", "get", "is", "count", "browse", "query")


def tell_of_management(path: str, properties: Mapping[str, str], draft: Draft) -> None:
    """Add to the draft's problems which roles the file lets see and change things, and which permissions say the same
    here. It is a warning if broker.xml grants none, so nobody could do what they could with Artemis.
    """
    source = Source(path)
    untold = Problems()  # nothing depends on the file
    text = load_text(path, Origin(path, 0), untold)
    root = parse(text, path, properties, source, untold) if text is not None else None
    if root is None:
        draft.problems.note("instance", Origin(path, 0), "management.xml cannot be read, and has no effect anyway")
        return
    source.root = root
    place = source.origin(root)
    for element in root.iter("{*}connector"):
        reason = "there is no JMX here, so no connector for it is opened"
        draft.problems.note("instance", source.origin(element), reason)
    viewers, editors = _roles(root)
    prefix = draft.core.values.get("management_rbac_prefix", "mops")
    says = "management.xml has no effect: permissions say who may see and change things by Jolokia and the console"
    if any(_GRANTS & setting.roles.keys() for setting in draft.security.values()):
        draft.problems.note("instance", place, says)
        return
    wanted = "".join(
        f'<permission type="{kind}" roles="{",".join(roles)}"/>'
        for kind, roles in (("view", viewers), ("edit", editors))
        if roles
    )
    draft.problems.warning(
        "instance",
        place,
        f"{says}, and broker.xml grants none, so nobody may; to let the roles of this file do what they could, add: "
        f'<security-setting match="{prefix}.#">{wanted}</security-setting>',
    )


def _roles(root: Element) -> tuple[list[str], list[str]]:
    """Those that may call something that reads, and those that may call something else, in their order."""
    viewers: dict[str, None] = {}
    editors: dict[str, None] = {}
    for element in root.iter("{*}access"):
        reads = str(element.get("method") or "").startswith(_READING)
        found = viewers if reads else editors
        found.update(dict.fromkeys(_names(element)))
    return [*viewers], [*editors]


def _names(element: Element) -> Iterator[str]:
    for name in str(element.get("roles") or "").split(","):
        if name.strip():
            yield name.strip()
