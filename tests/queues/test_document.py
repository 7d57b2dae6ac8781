"""docs/queues.md: each configuration in it passes ``check``, and each example does what stands there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from artemis_py.cli.main import main
from artemis_py.config.reader import loads
from tests.kit.bench import FLAT, ONE_AT_A_TIME, Bench
from tests.kit.crash.retained import Archive
from tests.kit.documents import whole
from tests.kit.frames import ServerFrame
from tests.kit.life import Life
from tests.kit.replays import Stage
from tests.kit.sources import ROOT

pytestmark = pytest.mark.wire

PAGE = Path(ROOT) / "docs" / "queues.md"
_BLOCK = re.compile(r"^```(xml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_QUEUE = re.compile(r'<queue name="([^"]+)"')


_ALONE = re.compile(r'\A<queue name="([^"]+)".*\Z', re.DOTALL)
"""A queue alone is on the anycast address of its name."""
BLOCKS = [
    (kind, _ALONE.sub(r'<addresses><address name="\1"><anycast>\g<0></anycast></address></addresses>', text))
    for kind, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
]
CONFIGURATIONS = [text for kind, text in BLOCKS if kind == "xml"]
EXAMPLES = [
    (configuration, example)
    for (kind, configuration), (next_kind, example) in itertools.pairwise(BLOCKS)
    if (kind, next_kind) == ("xml", "text")
]


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == sum(kind == "text" for kind, _ in BLOCKS) > 4


@pytest.mark.parametrize("core", CONFIGURATIONS)
def test_a_configuration_to_copy_passes_check(core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broker.xml"
    file.write_text(whole(core), encoding="utf-8")
    assert main(["check", str(file), "--silence", "no-port"]) == 0
    assert "valid (0 errors, 0 warnings, 0 notes)" in capsys.readouterr().out


@pytest.mark.parametrize(("core", "example"), EXAMPLES)
def test_an_example_does_what_stands_there(core: str, example: str, cut: bool) -> None:
    match = _QUEUE.search(core)
    assert match is not None
    if "journal-retention-directory" in core:
        play_with_a_past(core, example)
        return
    played = Example(core, match[1], cut=cut)
    for line in example.splitlines():
        played.play(line)


def play_with_a_past(core: str, example: str) -> None:
    """An example of a broker that keeps its log. ``begin`` adds a queue, which has an address of its own."""
    steps = [line.split() for line in example.splitlines()]
    later = {words[1] for words in steps if words[0] == "begin"}
    here = Stage(life=Life("", archive=Archive(), instead=_without(core, later)))
    for number, (step, name, *bodies) in enumerate(steps):
        if step == "begin":
            later.discard(name)
            here.life.broker.drain()
            here = Stage(life=Life("", here.life.disk, archive=here.archive, instead=_without(core, later)))
        elif step == "publish":
            here.send(*bodies, to=name)
        else:
            assert step == "read-from"
            address = here.core.queues[name].address.name
            here.write(f"reader {number}", "SUBSCRIBE", "id:1", f"destination:{address}::{name}", "ack:auto")
            assert here.got(f"reader {number}") == bodies
            here.write(f"reader {number}", "UNSUBSCRIBE", "id:1")


def _without(core: str, names: set[str]) -> str:
    """The file without these addresses."""
    for name in names:
        core, count = re.subn(rf'<address name="{name}">.*?</address>', "", core, flags=re.DOTALL)
        assert count == 1
    return core


class Example:
    """Plays the lines of an example."""

    def __init__(self, core: str, queue: str, *, cut: bool) -> None:
        self.bench = Bench(core=core, cut=cut)
        self.queue = queue
        self.name = ""
        self.held: dict[str, list[ServerFrame]] = {}
        self._readers = 0

    def play(self, line: str) -> None:
        """One line; where a step needs a client of its own, it has a new ``name``."""
        step, *rest = line.split()
        words: list[str] = []
        for word in rest:
            name, sign, duration_ms = word.partition(":+")
            words.append(f"{name}:{self.bench.world.now_ms + int(duration_ms)}" if sign else word)
        if step in _BY_SOMEBODY:
            self._readers += 1
            self.name = f"reader {self._readers}"
        (_STEPS | _BY_SOMEBODY)[step](self, *words)

    def answer(self, body: str, *headers: str) -> list[str]:
        """What a sender of its own is told of its message."""
        self.bench.write(self.name, "SEND", f"destination:/queue/{self.queue}", "receipt:r", *headers, body=body)
        return [frame.command for frame in self.bench.frames(self.name)]

    def read(self, queue: str, *bodies: str) -> None:
        self.bench.subscribe(self.name, ONE_AT_A_TIME, to=queue)
        assert self.bench.one_by_one(self.name) == [*bodies]
        self.bench.leave(self.name)

    def see(self, *bodies: str, header: str = "browser:true", ends: str = "leave") -> None:
        self.bench.subscribe(self.name, *filter(None, [header]), to=self.queue)
        assert self.bench.got(self.name) == [*bodies]
        if ends:
            getattr(self.bench, ends)(self.name)

    def join(self, name: str, *headers: str) -> None:
        chosen = [ONE_AT_A_TIME if header == "one" else header for header in headers]
        self.bench.subscribe(name, *(chosen or [FLAT]), to=self.queue)
        self.held[name] = []

    def gets(self, name: str, *bodies: str) -> None:
        frames = self.bench.messages(name)
        assert [frame.body.decode() for frame in frames] == [*bodies]
        self.held[name] += frames

    def not_admitted(self, name: str) -> None:
        self.bench.subscribe(name, to=self.queue)
        assert self.bench.error(name)
        del self.bench.world.clients[name]


def equal(found: object, wanted: object) -> None:
    assert found == wanted


_STEPS: Final[dict[str, Callable[..., object]]] = {
    "send": lambda one, body, *headers: one.bench.send(body, *headers, to=one.queue),
    "publish": lambda one, address, body, *headers: one.bench.write(
        "producer", "SEND", f"destination:/topic/{address}", *headers, body=body
    ),
    "wait": lambda one, duration_ms: one.bench.world.advance(int(duration_ms)),
    "lose": lambda one, name="": one.bench.lose(name or one.name),
    "join": Example.join,
    "gets": Example.gets,
    "ack": lambda one, name: one.bench.settle(name, one.held[name].pop(0)),
    "ack-where": lambda one, name, *condition: one.bench.write(
        name, "ACK", f"destination:/queue/{one.queue}", f"filter:{' '.join(condition)}"
    ),
    "leave": lambda one, name: one.bench.leave(name),
    "not-admitted": Example.not_admitted,
    "count": lambda one, count: equal(one.bench.count(one.queue), int(count)),
}
_BY_SOMEBODY: Final[dict[str, Callable[..., object]]] = {
    "refused": lambda one, *words: equal(one.answer(*words), ["ERROR"]),
    "waits": lambda one, *words: equal(one.answer(*words), []),
    "read": lambda one, *bodies: one.read(one.queue, *bodies),
    "read-from": Example.read,
    "fail": lambda one, body: one.see(body, header=ONE_AT_A_TIME, ends="lose"),
    "browse": Example.see,
    "take": lambda one, *bodies: one.see(*bodies, header="", ends=""),
}


def test_the_configurations_are_read() -> None:
    """Not only accepted: each declares a queue or a setting."""
    for core in CONFIGURATIONS:
        config = loads(whole(core))
        assert config.addresses or config.address_settings.entries
