"""What a configuration would do under a load, in figures that a person can check, and as the core does it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artemis_py.cli.main import main
from artemis_py.config.reader import load
from artemis_py.management.simulation import Limits, Load, Model, Outcome
from tests.kit.core import head_of, send
from tests.unit.management.why_parts import Asked

_FILE = """\
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
{core}
<addresses><address name="a"><anycast>
<queue name="a" {attributes}/>
</anycast></address></addresses>
<address-settings><address-setting match="a">
{lines}
</address-setting></address-settings>
</core></configuration>
"""


def ran(folder: Path, lines: str = "", attributes: str = "", core: str = "", **given: float) -> Outcome:
    """100/s of 100 bytes against one consumer at 50/s, for 100 s, unless something else is given."""
    file = folder / "broker.xml"
    file.write_text(_FILE.format(core=core, lines=lines, attributes=attributes))
    asked = {"per_s": 100, "body_bytes": 100, "header_bytes": 0, "consumers": 1, "settled_per_s": 50, "for_s": 100}
    return Model(Limits(load(file), "a", -1), Load(**{**asked, **given})).run()  # type: ignore[arg-type]


def told(outcome: Outcome) -> list[tuple[str, float]]:
    return [(moment.what, moment.at_s) for moment in outcome.moments]


@pytest.mark.parametrize("policy", ["PAGE", "BLOCK", "FAIL", "DROP"])
def test_a_full_address(tmp_path: Path, policy: str) -> None:
    lines = f"<max-size-messages>1000</max-size-messages>\n<address-full-policy>{policy}</address-full-policy>"
    outcome = ran(tmp_path, lines)
    assert told(outcome) == [("start", 0), (policy.lower(), 20)]
    assert outcome.moments[1].setting == f"max-size-messages 1000 messages, {tmp_path}/broker.xml:7"
    assert (outcome.offered, outcome.settled) == (10_000, 5_000)
    lost = {"PAGE": outcome.paged, "BLOCK": outcome.waiting, "FAIL": outcome.refused, "DROP": outcome.dropped}[policy]
    assert lost == pytest.approx(4_000)
    assert outcome.backlog == pytest.approx(5_000 if policy == "PAGE" else 1_000)


def test_a_ring_and_a_time_to_live(tmp_path: Path) -> None:
    outcome = ran(tmp_path, attributes='ring-size="500"')
    assert told(outcome) == [("start", 0), ("ring", 10)]
    assert (outcome.dropped, outcome.backlog) == (pytest.approx(4_500), pytest.approx(500))
    outcome = ran(tmp_path, "<expiry-delay>30000</expiry-delay>")
    assert told(outcome) == [("start", 0), ("expire", 60)]
    assert outcome.expired == pytest.approx(2_000)
    assert outcome.moments[1].setting.startswith("expiry-delay 30000 ms, ")
    assert told(ran(tmp_path, ttl_ms=10_000)) == [("start", 0), ("expire", 20)]


def test_it_drains_when_consumers_come(tmp_path: Path) -> None:
    outcome = ran(tmp_path, per_s=10, away_s=40, for_s=100)
    assert told(outcome) == [("start", 0), ("away", 0), ("consumers", 40), ("drained", 50)]
    assert (outcome.settled, outcome.backlog) == (pytest.approx(1_000), 0)


def test_limits_of_pages(tmp_path: Path) -> None:
    lines = (
        "<max-size-messages>1000</max-size-messages><address-full-policy>PAGE</address-full-policy>"
        "<page-limit-messages>1000</page-limit-messages><page-full-policy>FAIL</page-full-policy>"
    )
    assert told(ran(tmp_path, lines)) == [("start", 0), ("page", 20), ("fail", 40)]
    assert told(ran(tmp_path, lines, disk_bytes=50_000)) == [("start", 0), ("page", 20), ("block", 30)]


def test_depth_of_a_queue(tmp_path: Path) -> None:
    outcome = ran(tmp_path, attributes='overflow-policy="REJECT" max-depth-messages="100"')
    assert told(outcome) == [("start", 0), ("fail", 2)]
    assert outcome.moments[1].setting.startswith("max-depth-messages 100")


def test_consumers_that_get_nothing(tmp_path: Path) -> None:
    outcome = ran(tmp_path, attributes='exclusive="true"', consumers=3)
    assert told(outcome)[:2] == [("start", 0), ("consumers", 0)]
    assert outcome.settled == pytest.approx(5_000)
    outcome = ran(tmp_path, attributes='consumers-before-dispatch="2" delay-before-dispatch="10000"')
    assert told(outcome)[:3] == [("start", 0), ("gate", 0), ("consumers", 10)]


def test_slow_consumers_are_named(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "<slow-consumer-threshold>60</slow-consumer-threshold>")
    assert ("slow-consumer", 0) in told(outcome)


@pytest.mark.parametrize("size", [10, 1_000])
def test_the_core_is_full_when_the_model_says_so(tmp_path: Path, size: int) -> None:
    """As many messages fit as the arithmetic says."""
    settings = "<max-size-bytes>100000</max-size-bytes><address-full-policy>BLOCK</address-full-policy>"
    addresses = '<address name="a"><anycast><queue name="a"/></anycast></address>'
    asked = Asked(tmp_path, match="a", settings=settings, addresses=addresses)
    taken = send(asked.broker, count=2_000, body=b"x" * size)
    header_bytes = head_of("a").size_bytes
    given = Load(per_s=1, body_bytes=size, header_bytes=header_bytes, consumers=0, settled_per_s=0, for_s=5_000)
    level = Limits(load(asked.file), "a", -1).memory_limits(given)[0][0]
    assert 0 <= taken - level < 1


# ---- the command -----------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broker.xml"
    lines = "<max-size-messages>1000</max-size-messages>\n<address-full-policy>BLOCK</address-full-policy>"
    file.write_text(_FILE.format(core="", lines=lines, attributes=""))
    words = [
        str(file),
        "a",
        "--in",
        "100/s",
        "--size",
        "2KiB",
        "--consumers",
        "1",
        "--out",
        "50/s",
        "each",
        "--for",
        "2h",
    ]
    assert main(["simulate", *words]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split()[:3] == ["20.0", "s", "block"]
    assert f"max-size-messages 1000 messages, {file}:7" in printed[2]
    assert printed[-1].split()[:3] == ["2:00:00", "h", "end"]
    assert main(["simulate", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["end"]["backlog"] == 1_000
    assert main(["simulate", str(file), "a", "--in", "1/s", "--out", "each"]) == 1
    with pytest.raises(SystemExit):
        main(["simulate", str(file), "a", "--in", "fast", "--out", "1/s"])
    assert "'fast' is not a rate; write 5000/s" in capsys.readouterr().err
