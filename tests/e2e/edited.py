"""A broker whose file is edited while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.management.told import Told
from tests.kit.process import BOTH, anycast, configuration, started


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


@dataclass
class Edited(Told):
    """A broker and its file."""

    file: Path = field(kw_only=True)

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.broker.api("/api/broker/configuration"))

    def write(self, text: str) -> None:
        """As ``sed -i`` and most editors: a new file takes the place of the old one."""
        beside = self.file.with_suffix(".new")
        beside.write_text(text, "utf-8")
        beside.rename(self.file)

    def reload(self) -> dict[str, Any]:
        return dict(self.broker.api("/api/broker/reload", "POST"))

    def await_attribute(self, name: str, field: str, value: object) -> None:
        self.broker.eventually(f"{field} of {name}", lambda: self.queue(name)[field], lambda seen: seen == value)


@contextmanager
def edited(text: str, folder: Path, named: Path | None = None) -> Iterator[Edited]:
    file = named or folder / "broker.xml"
    if named is None:
        file.write_text(text, "utf-8")
    with started(file, log=folder / "broker.log", folder=folder) as broker:
        yield Edited(broker, file=file)
        if broker.process.poll() is None:
            assert broker.stop() == 0, broker.said
