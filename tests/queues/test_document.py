"""docs/queues.md: each configuration in it passes ``check``, and each example does what stands there."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from artemis_py.cli.main import main
from artemis_py.config.reader import loads
from tests.kit.bench import FLAT, ONE_AT_A_TIME, Bench
from tests.kit.crash.retained import Archive
from tests.kit.documents import NO_LOGINS, document
from tests.kit.frames import ServerFrame
from tests.kit.life import Life
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
    file.write_text(document(NO_LOGINS + core), encoding="utf-8")
    assert main(["check", str(file), "--silence", "no-port"]) == 0
    assert "valid (0 errors, 0 warnings, 0 notes)" in capsys.readouterr().out


@pytest.mark.parametrize(("core", "example"), EXAMPLES)
def test_an_example_does_what_stands_there(core: str, example: str, cut: bool) -> None:
    match = _QUEUE.search(core)
    assert match is not None
    if "journal-retention-directory" in core:
        play_with_a_past(core, example)
        return
    played = Example(Bench(core=core, cut=cut), match[1])
    for line in example.splitlines():
        played.play(line)


def play_with_a_past(core: str, example: str) -> None:
    """An example of a broker that keeps its log. ``begin`` adds a queue, which has an address of its own."""
    steps = [line.split() for line in example.splitlines()]
    later = {words[1] for words in steps if words[0] == "begin"}
    here = Life("", archive=Archive(), instead=_without(core, later))
    for number, (step, name, *bodies) in enumerate(steps):
        if step == "begin":
            later.discard(name)
            here = Life("", here.disk, archive=here.archive, instead=_without(core, later))
        elif step == "publish":
            here.send_all(bodies, to=name)
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


@dataclass
class Example:
    """Plays the lines of an example."""

    bench: Bench
    queue: str
    held: dict[str, list[ServerFrame]] = field(default_factory=dict)
    readers: int = 0

    def play(self, line: str) -> None:
        """One line."""
        bench, queue = self.bench, self.queue
        step, *rest = line.split()
        words: list[str] = []
        for word in rest:
            header, sign, duration_ms = word.partition(":+")
            words.append(f"{header}:{bench.world.now_ms + int(duration_ms)}" if sign else word)
        match step, words:
            case "send", [body, *headers]:
                bench.send(body, *headers, to=f"/queue/{queue}")
            case "publish", [address, body, *headers]:
                bench.write("producer", "SEND", f"destination:/topic/{address}", *headers, body=body)
            case "wait", [duration_ms]:
                bench.world.advance(int(duration_ms))
            case "count", [count]:
                assert bench.count(queue) == int(count)
            case "join", [name, *headers]:
                chosen = [ONE_AT_A_TIME if header == "one" else header for header in headers]
                bench.subscribe(name, *(chosen or [FLAT]), to=queue)
                self.held[name] = []
            case "not-admitted", [name]:
                bench.subscribe(name, to=queue)
                assert bench.error(name)
            case "gets", [name, *bodies]:
                frames = bench.messages(name)
                assert [frame.body.decode() for frame in frames] == bodies
                self.held[name] += frames
            case "ack", [name]:
                bench.settle(name, self.held[name].pop(0))
            case "ack-where", [name, *condition]:
                bench.write(name, "ACK", f"destination:/queue/{queue}", f"filter:{' '.join(condition)}")
            case "leave", [name]:
                bench.leave(name)
            case "lose", names:
                bench.lose(*names or [f"reader {self.readers}"])
            case _:
                self.readers += 1
                self.play_alone(f"reader {self.readers}", step, words)

    def play_alone(self, name: str, step: str, words: list[str]) -> None:
        """A step for which a client comes that has done nothing before."""
        bench, queue = self.bench, self.queue
        match step:
            case "refused" | "waits":
                body, *headers = words
                bench.write(name, "SEND", f"destination:/queue/{queue}", "receipt:r", *headers, body=body)
                told = [frame.command for frame in bench.frames(name)]
                assert told == (["ERROR"] if step == "refused" else [])
            case "read" | "read-from":
                other, bodies = (queue, words) if step == "read" else (words[0], words[1:])
                bench.subscribe(name, ONE_AT_A_TIME, to=other)
                assert bench.drain(name) == bodies
                bench.leave(name)
            case "browse" | "take" | "fail":
                how = {"browse": ["browser:true"], "take": [], "fail": [ONE_AT_A_TIME]}[step]
                bench.subscribe(name, *how, to=queue)
                assert bench.got(name) == words
                if step == "browse":
                    bench.leave(name)
                elif step == "fail":
                    bench.lose(name)
            case _:
                pytest.fail(f"a step that nobody knows: {step}")


def test_the_configurations_are_read() -> None:
    """Not only accepted: each declares a queue or a setting."""
    for core in CONFIGURATIONS:
        config = loads(document(NO_LOGINS + core))
        assert config.addresses or config.address_settings.entries
