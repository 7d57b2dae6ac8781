"""docs/queues.md: each configuration in it passes ``check``, and each example does what stands there."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from artemis_py.cli.main import main
from artemis_py.config.reader import loads
from tests.kit.bench import ONE_AT_A_TIME, Bench
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


def _core(kind: str, text: str) -> str:
    """What belongs below ``core``: a queue alone is on the anycast address of its name."""
    name = _QUEUE.match(text)
    if kind != "xml" or name is None:
        return text
    return f'<addresses><address name="{name[1]}"><anycast>{text}</anycast></address></addresses>'


BLOCKS = [(kind, _core(kind, text)) for kind, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))]
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
        played.play(line.split())


def play_with_a_past(core: str, example: str) -> None:
    """An example of a broker that keeps its log. ``begin`` adds a queue, which has an address of its own."""
    steps = [line.split() for line in example.splitlines()]
    later = {words[1] for words in steps if words[0] == "begin"}
    here = Stage(Life("", archive=Archive(), instead=_without(core, later)))
    for number, (step, name, *bodies) in enumerate(steps):
        if step == "begin":
            later.discard(name)
            here.life.broker.drain()
            here = Stage(Life("", here.life.disk, archive=here.archive, instead=_without(core, later)))
        elif step == "publish":
            here.send(*bodies, to=name)
        else:
            assert step == "read-from"
            address = here.life.broker.broker.queues[name].address.name
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
        self._bench = Bench(core=core, cut=cut)
        self._queue = queue
        self._readers = 0
        self._taker = ""
        self._held: dict[str, list[ServerFrame]] = {}

    def play(self, words: list[str]) -> None:
        """One line."""
        step, *rest = words
        getattr(self, f"_{step.replace('-', '_')}")([self._in_time(word) for word in rest])

    def _in_time(self, word: str) -> str:
        """A header with a time that is told from now."""
        name, sign, duration_ms = word.partition(":+")
        return f"{name}:{self._bench.world.now_ms + int(duration_ms)}" if sign else word

    def _next_name(self) -> str:
        self._readers += 1
        return f"reader {self._readers}"

    def _send(self, words: list[str]) -> None:
        body, *headers = words
        self._bench.send(body, *headers, to=self._queue)

    def _publish(self, words: list[str]) -> None:
        address, body, *headers = words
        self._bench.write("producer", "SEND", f"destination:/topic/{address}", *headers, body=body)

    def _answer(self, words: list[str]) -> list[str]:
        """What a sender of its own is told of its message."""
        body, *headers = words
        name = self._next_name()
        self._bench.write(name, "SEND", f"destination:/queue/{self._queue}", "receipt:r", *headers, body=body)
        return [frame.command for frame in self._bench.frames(name)]

    def _refused(self, words: list[str]) -> None:
        assert self._answer(words) == ["ERROR"]

    def _waits(self, words: list[str]) -> None:
        assert self._answer(words) == []

    def _wait(self, words: list[str]) -> None:
        self._bench.world.advance(int(words[0]))

    def _read(self, bodies: list[str]) -> None:
        self._read_from([self._queue, *bodies])

    def _read_from(self, words: list[str]) -> None:
        queue, *bodies = words
        name = self._next_name()
        self._bench.subscribe(name, ONE_AT_A_TIME, to=queue)
        assert self._bench.one_by_one(name) == bodies
        self._bench.leave(name)

    def _fail(self, words: list[str]) -> None:
        name = self._next_name()
        self._bench.subscribe(name, ONE_AT_A_TIME, to=self._queue)
        (frame,) = self._bench.messages(name)
        assert frame.body.decode() == words[0]
        self._bench.lose(name)

    def _browse(self, bodies: list[str]) -> None:
        name = self._next_name()
        self._bench.subscribe(name, "browser:true", to=self._queue)
        assert self._bench.got(name) == bodies
        self._bench.leave(name)

    def _take(self, bodies: list[str]) -> None:
        self._taker = self._next_name()
        self._bench.subscribe(self._taker, to=self._queue)
        assert self._bench.got(self._taker) == bodies

    def _lose(self, words: list[str]) -> None:
        self._bench.lose(words[0] if words else self._taker)

    def _join(self, words: list[str]) -> None:
        name, *headers = words
        headers = [ONE_AT_A_TIME if header == "one" else header for header in headers]
        self._bench.subscribe(name, *(headers or ["consumer-window-size:-1"]), to=self._queue)
        self._held[name] = []

    def _gets(self, words: list[str]) -> None:
        name, *bodies = words
        frames = self._bench.messages(name)
        assert [frame.body.decode() for frame in frames] == bodies
        self._held[name] += frames

    def _ack(self, words: list[str]) -> None:
        self._bench.settle(words[0], self._held[words[0]].pop(0))

    def _ack_where(self, words: list[str]) -> None:
        name, *condition = words
        destination = f"destination:/queue/{self._queue}"
        self._bench.write(name, "ACK", destination, f"filter:{' '.join(condition)}")

    def _leave(self, words: list[str]) -> None:
        self._bench.leave(words[0])

    def _not_admitted(self, words: list[str]) -> None:
        self._bench.subscribe(words[0], to=self._queue)
        assert [frame.command for frame in self._bench.frames(words[0])] == ["ERROR"]
        del self._bench.world.clients[words[0]]

    def _count(self, words: list[str]) -> None:
        assert self._bench.count(self._queue) == int(words[0])


def test_the_configurations_are_read() -> None:
    """Not only accepted: each declares a queue or a setting."""
    for core in CONFIGURATIONS:
        config = loads(whole(core))
        assert config.addresses or config.address_settings.entries
