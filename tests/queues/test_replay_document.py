"""docs/replay.md: its configuration passes ``check``, and each example does what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artemis_py.cli.main import main
from tests.kit.documents import whole
from tests.kit.replays import Stage
from tests.kit.sources import ROOT

pytestmark = pytest.mark.wire

PAGE = (Path(ROOT) / "docs" / "replay.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(xml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = _BLOCK.findall(PAGE)
CONFIGURATIONS = [text for kind, text in BLOCKS if kind == "xml"]
EXAMPLES = [text for kind, text in BLOCKS if kind == "text"]
_NAMED = re.compile(r"@(\w+)")
_TO = "/queue/orders"


class Example:
    """Plays the lines of an example."""

    def __init__(self, *, cut: bool) -> None:
        self._stage = Stage(cut=cut)
        self._bodies: list[str] = []

    def play(self, line: str) -> None:
        """One line."""
        step, *words = line.split()
        getattr(self, f"_{step}")(words)

    def _send(self, words: list[str]) -> None:
        self._stage.send(words[0], headers=tuple(words[1:]), to=_TO)
        self._bodies.append(words[0])

    def _read(self, bodies: list[str]) -> None:
        client = self._stage.client("reader")
        self._stage.put(client, f"SUBSCRIBE\nid:r\ndestination:{_TO}\nack:auto\n\n\0")
        assert self._stage.got("reader") == bodies
        self._stage.put(client, "UNSUBSCRIBE\nid:r\n\n\0")

    def _replay(self, words: list[str]) -> None:
        name, *headers = words
        places = dict(zip(self._bodies, self._stage.offsets("orders"), strict=True))
        told = [_NAMED.sub(lambda found: str(places[found[1]]), header) for header in headers]
        self._stage.write(name, "SUBSCRIBE", "id:1", f"destination:{_TO}", *told)

    def _gets(self, words: list[str]) -> None:
        name, *bodies = words
        assert self._stage.got(name) == bodies

    def _wait(self, words: list[str]) -> None:
        self._stage.advance(int(words[0]))


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) > 4
    assert CONFIGURATIONS


@pytest.mark.parametrize("core", CONFIGURATIONS)
def test_a_configuration_to_copy_passes_check(core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broker.xml"
    file.write_text(whole(core.replace("data/retention", f"{tmp_path}/retention")), encoding="utf-8")
    assert main(["check", str(file), "--silence", "no-port"]) == 0
    assert "valid (0 errors, 0 warnings, 0 notes)" in capsys.readouterr().out


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_does_what_stands_there(example: str, cut: bool) -> None:
    played = Example(cut=cut)
    for line in example.splitlines():
        played.play(line)
