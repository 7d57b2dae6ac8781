"""The file of a broker that is edited while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.kit.process import BOTH, anycast, configuration


def text_of(
    *addresses: str,
    settings: str = "",
    diverts: str = "",
    acceptors: Mapping[str, str] | None = None,
    core: str = "",
    persistent: bool = False,
) -> str:
    core += f"<journal-file-size>256K</journal-file-size><diverts>{diverts}</diverts>"
    return configuration(
        {**BOTH, **(acceptors or {})},
        folder=Path("data"),
        persists=persistent,
        core=core,
        addresses="".join(addresses) or anycast("other"),
        settings=settings,
    )
