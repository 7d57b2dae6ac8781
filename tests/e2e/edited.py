"""A broker whose file is edited while it runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.management.told import Told
from tests.kit.forks import run_text
from tests.kit.process import BOTH, WAIT_S, BrokerProcess, configuration, started


def queue(name: str, attributes: str = "") -> str:
    return f'<address name="{name}"><anycast><queue name="{name}" {attributes}/></anycast></address>'


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
        addresses="".join(addresses) or queue("other"),
        settings=settings,
    )


@dataclass
class Edited:
    """A broker and its file."""

    told: Told
    file: Path

    @property
    def broker(self) -> BrokerProcess:
        return self.told.broker

    @property
    def reads(self) -> int:
        """How often it has read its file again, whatever came of it."""
        refused: int = self.state["reloads"]["refused"]
        return self.broker.said.count(" CFG-1001 ") + refused

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.told.ask("GET", "/api/broker/configuration")[1])

    def write(self, text: str) -> None:
        """As ``sed -i`` and most editors: a new file takes the place of the old one."""
        beside = self.file.with_suffix(".new")
        beside.write_text(text, "utf-8")
        beside.rename(self.file)

    def reload(self) -> dict[str, Any]:
        status, answer = self.told.ask("POST", "/api/broker/reload")
        assert status == 200, answer
        return dict(answer)

    def attribute(self, name: str, field: str) -> Any:
        return self.told.queue(name)[field]

    def await_attribute(self, name: str, field: str, value: object) -> None:
        self.broker.eventually(f"{field} of {name}", lambda: self.attribute(name, field), lambda seen: seen == value)

    def names(self) -> set[str]:
        return {row["name"] for row in self.told.ask("GET", "/api/queues?fields=name&size=1000")[1]["data"]}

    def diff(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_text(["diff", *words], timeout=WAIT_S)


@contextmanager
def edited(text: str, folder: Path, named: Path | None = None) -> Iterator[Edited]:
    file = named or folder / "broker.xml"
    if named is None:
        file.write_text(text, "utf-8")
    with started(file, log=folder / "broker.log", folder=folder) as broker:
        yield Edited(Told(broker), file)
        if broker.process.poll() is None:
            assert broker.stop() == 0, broker.said
