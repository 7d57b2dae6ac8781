from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.registry import choose
from artemis_py.perf.scenario import Options
from bench import document
from bench.__main__ import DEFAULT_BROKERS, MINUTES, PARTS, SCENARIOS, main
from bench.activemq import ActiveMqClassic
from bench.artemis import Artemis
from bench.broker import Broker
from bench.brokers import BROKERS, present
from bench.coilmq import CoilMq
from bench.comparison import DETAILS, IN_PAGE, Comparison, headline_rows, other_load, verdict
from bench.driver import Measured, group, measure
from bench.own import ArtemisPy
from bench.part import NotMeasured
from bench.rabbitmq import RabbitMq
from bench.relay import Relay
from bench.targets import TARGETS
from tests.unit.perf.compilers import needs_a_compiler
from tests.unit.perf.test_goals import measured

IN_MEMORY = (ArtemisPy, ActiveMqClassic, CoilMq, Artemis)
DURABLE = (ArtemisPy, CoilMq, RabbitMq, Artemis)


def compare(brokers: Iterable[type[Broker]], scenario: str, *values: float | None) -> list[Measured]:
    """What was measured of each."""
    (chosen,) = choose([scenario])
    rounds = [[] if value is None else [{chosen.headline: value}] for value in values]
    return [measured(broker(), each, [scenario]) for broker, each in zip(brokers, rounds, strict=True)]


@pytest.mark.parametrize(
    ("scenario", "own", "activemq", "coilmq", "ratio", "met"),
    [
        ("1", 330.0, 100.0, 110.0, 3.0, True),
        ("1", 320.0, 110.0, 100.0, 320 / 110, False),
        ("1", 320.0, None, 100.0, 3.2, True),
        ("1", 320.0, None, None, None, None),
        ("1", None, 100.0, 100.0, None, None),
        ("7", 200.0, 3000.0, 1000.0, 5.0, True),
        ("7", 400.0, None, None, None, False),
        ("8", 499.0, 1000.0, 998.0, 2.0, True),
        ("12", 10.0, 5.0, None, 2.0, None),
    ],
)
def test_ratio_to_the_better_peer(
    scenario: str,
    own: float | None,
    activemq: float | None,
    coilmq: float | None,
    ratio: float | None,
    met: bool | None,
) -> None:
    found = verdict(compare(IN_MEMORY, scenario, own, activemq, coilmq, 1e12), scenario)
    assert found.ratio == (None if ratio is None else pytest.approx(ratio))
    assert found.met is met


@pytest.mark.parametrize(
    ("scenario", "own", "rabbitmq", "artemis", "ratio", "met"),
    [
        ("3", 500.0, 100.0, 90.0, 5.0, True),
        ("3", 499.0, 100.0, None, 4.99, False),
        ("3", 600.0, 100.0, 200.0, 3.0, False),
        ("3i", 400.0, 100.0, None, 4.0, True),
        ("11", 500.0, None, None, None, None),
        ("4", 1.6, 3.2, None, 2.0, True),
        ("4", 1.61, None, None, None, False),
        ("recovery", 200_000.0, 100_000.0, None, 2.0, True),
        ("recovery", 199_999.0, None, None, None, False),
    ],
)
def test_durable_scenarios_are_compared_with_brokers_that_sync(
    scenario: str,
    own: float,
    rabbitmq: float | None,
    artemis: float | None,
    ratio: float | None,
    met: bool | None,
) -> None:
    found = verdict(compare(DURABLE, scenario, own, 1e12, rabbitmq, artemis), scenario)
    assert found.ratio == (None if ratio is None else pytest.approx(ratio))
    assert found.met is met


def test_a_missed_target_is_plain_in_the_table() -> None:
    row = headline_rows(compare(IN_MEMORY, "1", 100.0, 100.0, None, 1e12))[1]
    assert row == [
        "1",
        "transient 100 B",
        "messages/s",
        "100/s",
        "100/s",
        "-",
        "1,000,000,000,000/s",
        "1.0 ×",
        "≥ 3 ×",
        "NOT MET",
    ]
    assert "NOT MET" in Comparison(compare(IN_MEMORY, "1", 100.0, 100.0, None, 1e12), []).text()


def test_the_document_has_some_of_the_details() -> None:
    found = compare(IN_MEMORY, "1", 100.0, 100.0, None, 1e12)
    found[0].outcomes["1"].rounds[0] |= {"cpu_s_per_million": 2.0, "p99_us": 7.0}
    comparison = Comparison(found, [])
    detailed, shown = (tables[1].rows[1:] for tables in (comparison.tables(), comparison.page_tables()))
    assert [row[:3] for row in detailed] == [["1", "CPU s/M", "2.00"], ["1", "p99 µs", "7"]]
    assert [row[:3] for row in shown] == [["1", "CPU s/M", "2.00"]]
    assert "p99 µs" in comparison.text()
    assert "p99 µs" not in comparison.section()
    assert set().union(*IN_PAGE.values()) <= set(SCENARIOS)
    assert set(IN_PAGE) <= set(DETAILS)


def test_the_load_of_other_programs_is_named() -> None:
    found = compare(IN_MEMORY, "1", 100.0, 100.0, None, 1e12)
    assert other_load(found) is None
    for one, percent in zip(found, (1.0, 4.0, 60.0, 2.0), strict=True):
        one.outcomes["1"].rounds.append({"other_load_percent": percent})
    assert other_load(found) == (
        "Other programs used 3 % of the machine's CPU time in the median measurement, 60 % in the worst"
    )
    assert "60 % in the worst." in Comparison(found, []).text()


def test_every_target_belongs_to_a_scenario_of_the_default_set() -> None:
    assert set(TARGETS) <= set(SCENARIOS)
    assert set(DEFAULT_BROKERS.split(",")) <= {broker.name for broker in BROKERS}
    assert set(MINUTES) == set(PARTS)


def test_scenarios_that_want_a_fresh_broker_stand_alone() -> None:
    found = [[scenario.id for scenario in members] for members in group(choose(["1", "7", "2", "9", "10"]))]
    assert found == [["7"], ["9"], ["10"], ["1", "2"]]


def test_unknown_brokers_are_refused() -> None:
    with pytest.raises(PerfError, match="unknown broker nonsense"):
        present(["nonsense"])


def test_absent_brokers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARTEMIS_HOME", str(tmp_path))
    brokers, absent = present(["artemis_py", "artemis"])
    assert [broker.name for broker in brokers] == ["artemis_py"]
    assert absent == ["Apache Artemis (ARTEMIS_HOME has no bin/artemis)"]


@needs_a_compiler
def test_a_run_with_the_relay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("bench.driver.WARM_UP_S", 0.1)
    options = Options(messages=1000, seconds=0.1, warmup_s=0.1)
    said: list[str] = []
    relay = Relay()
    assert relay.absent() is None
    found = measure([relay], ["1", "5", "3", "10"], options, 2, said.append)
    outcomes = found[0].outcomes
    assert {scenario: len(outcome.rounds) for scenario, outcome in outcomes.items()} == {
        "1": 2,
        "5": 2,
        "3": 0,
        "10": 2,
    }
    assert [outcome.failures for outcome in outcomes.values()] == [[], [], [], []]
    assert said[:2] == ["round 1 of 2: relay in C, scenario 10", "round 1 of 2: relay in C, scenario 1 5"]

    section = Comparison(found, ["CoilMQ (no pip)"]).section()
    assert "| 1 | transient 100 B | messages/s |" in section
    assert "Not measured: CoilMQ (no pip)." in section


def test_headlines_name_what_was_measured_against_what() -> None:
    brokers = (ArtemisPy, CoilMq, RabbitMq, Artemis)
    values: dict[str, tuple[float | None, ...]] = {
        "1u": (425_577.0, 78_973.0, 41_325.0, 124_619.0),
        "3": (9_000.0, None, 7_000.0, 5_000.0),
        "11": (8_000.0, None, 6_000.0, None),
        "10": (150.0, 39.0, 1_472.0, 1_192.0),
        "7": (347.0, 1_070.0, 4_506.0, 3_937.0),
    }
    found = [Measured(broker(), "1 (compiled)") for broker in brokers]
    for scenario, of_each in values.items():
        for one, same in zip(found, compare(brokers, scenario, *of_each), strict=True):
            one.outcomes |= same.outcomes
    text = " ".join(Comparison(found, []).headlines().split())
    assert "no two headers alike: 425,577 (Apache Artemis 124,619);" in text
    assert "in blocks: 9,000 (RabbitMQ 7,000);" in text
    assert "wait for each RECEIPT: 8,000 (RabbitMQ 6,000). So measured, artemis_py 1 (compiled) is ready in" in text
    assert text.endswith("ready in 150 ms, and a queued 100-byte message takes 347 B of memory.")


def test_a_part_that_fails_does_not_keep_others_from_being_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = PerfError("the disk is full")
    measures = {"goals": Mock(side_effect=failure), "day": Mock(return_value=NotMeasured("it rains"))}
    monkeypatch.setattr("bench.__main__.PARTS", measures)
    file = tmp_path / "benchmarks.md"
    names = ("run", "goals", "day")
    file.write_text("".join(f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in names), "utf-8")
    monkeypatch.setattr(document, "DOCUMENT", file)
    assert main(["--scenario", "goals,day", "--write", "--check"]) == 1
    written = file.read_text("utf-8")
    assert "Not measured: the disk is full." in written
    assert "Not measured: it rains." in written
    assert len(set(document.stamps(written).values())) == 1
    assert "part 2 of 2: day, about 1.5 minutes" in capsys.readouterr().err
