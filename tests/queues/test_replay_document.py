"""docs/replay.md: its configuration passes ``check``, and each example does what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artemis_py.cli.main import main
from tests.kit.crash.retained import Archive
from tests.kit.documents import NO_LOGINS, document
from tests.kit.life import Life
from tests.kit.sources import ROOT

pytestmark = pytest.mark.wire

PAGE = (Path(ROOT) / "docs" / "replay.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(xml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = _BLOCK.findall(PAGE)
CONFIGURATIONS = [text for kind, text in BLOCKS if kind == "xml"]
EXAMPLES = [text for kind, text in BLOCKS if kind == "text"]
_NAMED = re.compile(r"@(\w+)")
_TO = "/queue/orders"


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) > 4
    assert CONFIGURATIONS


@pytest.mark.parametrize("core", CONFIGURATIONS)
def test_a_configuration_to_copy_passes_check(core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broker.xml"
    file.write_text(document(NO_LOGINS + core.replace("data/retention", f"{tmp_path}/retention")), encoding="utf-8")
    assert main(["check", str(file), "--silence", "no-port"]) == 0
    assert "valid (0 errors, 0 warnings, 0 notes)" in capsys.readouterr().out


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_does_what_stands_there(example: str, cut: bool) -> None:
    stage, bodies = Life(archive=Archive(), cut=cut), list[str]()
    for step, *words in map(str.split, example.splitlines()):
        match step:
            case "send":
                stage.send(words[0], *words[1:], to=_TO)
                bodies.append(words[0])
            case "read":
                stage.subscribe("reader", to="orders", ack="auto")
                assert stage.got("reader") == words
                stage.write("reader", "UNSUBSCRIBE", "id:1")
            case "replay":
                places = dict(zip(bodies, stage.offsets("orders"), strict=True))
                told = [_NAMED.sub(lambda found, at=places: str(at[found[1]]), header) for header in words[1:]]  # type: ignore[misc]
                stage.write(words[0], "SUBSCRIBE", "id:1", f"destination:{_TO}", *told)
            case "gets":
                assert stage.got(words[0]) == words[1:]
            case _:
                assert step == "wait"
                stage.broker.advance(int(words[0]))
