from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from artemis_py.perf.link import Link, Target
from artemis_py.perf.registry import choose
from artemis_py.perf.result import Progress
from artemis_py.perf.scenario import Options, new_outcome
from artemis_py.perf.startup import running
from bench.broker import Broker
from bench.brokers import BROKERS
from bench.driver import Measured, measure
from bench.goals import BUILDS, CPU, GOALS, HEAD, P50, RATE, Goals, pairs, wanted
from bench.nats import Nats
from bench.own import ArtemisPy, Older, OnAsyncio
from bench.redis import COUNT, Redis, RedisLink, RedisSink, command
from bench.relay import Relay
from tests.kit.ports import free_port
from tests.unit.perf.compilers import needs_a_compiler

SCENARIOS = list(dict.fromkeys(goal.scenario for goal in GOALS))


def measured(broker: Broker, rounds: Iterable[dict[str, float]] = (), scenarios: Sequence[str] = SCENARIOS) -> Measured:
    """The same values in each of these scenarios."""
    found = Measured(broker, "1")
    for scenario in choose(scenarios):
        outcome = found.outcomes[scenario.id] = new_outcome(scenario)
        outcome.rounds += [dict(values) for values in rounds]
    return found


def cells(goals: Goals, scenario: str, peer: str) -> list[str]:
    [row] = [row.cells() for row in goals.judged() if (row.goal.scenario, row.goal.peer) == (scenario, peer)]
    return row[3:]


def test_each_goal_is_about_something_that_can_be_measured() -> None:
    known = {broker.name: broker for broker in BROKERS}
    for goal in (*GOALS, *BUILDS):
        assert known[goal.peer]().scenario(goal.other) is not None
        assert {goal.peer, "artemis_py"} <= pairs([goal])[goal.other] | {"artemis_py"}
        assert goal.metric in (CPU, RATE, P50)
    assert pairs(GOALS)["1"] == {"artemis_py", "older", "nats"}
    assert pairs(GOALS)["1w"] == {"artemis_py"}


def test_costs_are_at_most_and_rates_at_least_the_goal() -> None:
    goals = Goals(
        GOALS,
        [
            measured(ArtemisPy(), [{CPU: 20.0, P50: 90.0, RATE: 50_000.0}]),
            measured(Older(), [{CPU: 40.0, P50: 100.0}]),
            measured(Relay(), [{CPU: 4.0}]),
            measured(Redis(), [{P50: 100.0, RATE: 100_000.0}]),
            measured(Nats(), [{RATE: 40_000.0}]),
        ],
        ["Apache Artemis (no java)"],
    )
    assert cells(goals, "13", "older") == ["artemis_py at OLD", "20.00 µs", "40.00 µs", "0.50 ×", "≤ 0.55 ×", "met"]
    assert cells(goals, "13", "relay") == ["relay in C", "20.00 µs", "4.00 µs", "5.00 ×", "≤ 4.5 ×", "NOT MET"]
    assert cells(goals, "4", "redis") == ["Redis Streams", "90 µs", "100 µs", "0.90 ×", "≤ 1 ×", "met"]
    assert cells(goals, "4", "older") == ["artemis_py at OLD", "90 µs", "100 µs", "0.90 ×", "≤ 0.75 ×", "NOT MET"]
    assert cells(goals, "11", "redis") == ["Redis Streams", "50,000/s", "100,000/s", "0.50 ×", "≥ 0.6 ×", "NOT MET"]
    assert cells(goals, "1", "nats") == ["NATS core", "50,000/s", "40,000/s", "1.25 ×", "≥ 1 ×", "met"]
    assert cells(goals, "8", "artemis") == ["Apache Artemis", "20.00 µs", "absent", "", "≤ 0.4 ×", ""]
    assert cells(goals, "3", "older") == ["artemis_py at OLD", "20.00 µs", "40.00 µs", "0.50 ×", "≤ 0.8 ×", "met"]
    assert cells(goals, "13", "relay")[2] != cells(Goals(GOALS, [goals.found[0]], []), "13", "relay")[2] == "absent"
    assert cells(Goals(GOALS, [*goals.found[:1], measured(Nats())], []), "1", "nats")[2] == "-"
    assert cells(goals, "1w", "artemis_py") == ["transient 100 B", "20.00 µs", "20.00 µs", "1.00 ×", "≤ 3 ×", "met"]
    assert goals.missed == ["13", "4", "11", "8", "3"]


def test_a_ratio_is_that_of_a_round_where_both_have_all_of_them() -> None:
    own = measured(ArtemisPy(), [{CPU: 10.0}, {CPU: 30.0}, {CPU: 20.0}])
    all_of_them = measured(Older(), [{CPU: 10.0}, {CPU: 100.0}, {CPU: 100.0}])
    assert cells(Goals(GOALS, [own, all_of_them], []), "6", "older")[3] == "0.30 ×"
    two = measured(Older(), [{CPU: 10.0}, {CPU: 100.0}])
    assert cells(Goals(GOALS, [own, two], []), "6", "older")[3] == "0.36 ×"


def test_the_table_in_all_its_forms() -> None:
    own = measured(ArtemisPy(), [{CPU: 20.0, "other_load_percent": 3.0}])
    own.outcomes["1"].failures.append("stalled")
    goals = Goals(GOALS, [own, measured(Older(), [{CPU: 40.0}])], ["NATS core (no nats-server)"])
    text = goals.text()
    assert "artemis_py 1, artemis_py at OLD 1." in text
    assert "Other programs used 3 % of the machine's CPU time" in text
    assert "Not measured: NATS core (no nats-server)." in text
    assert "Failure: artemis_py, scenario 1: stalled" in text
    told = json.loads(json.dumps(goals.as_json()))
    assert told["rows"][0] == {
        "scenario": "13",
        "row": "1 producer, window 1, receipts",
        "metric": CPU,
        "ours": 20.0,
        "peer": "older",
        "peer_scenario": "13",
        "peer_value": 40.0,
        "ratio": 0.5,
        "goal": "≤ 0.55 ×",
        "met": True,
    }
    assert len(told["rows"]) == len(GOALS)
    section = goals.section()
    assert f"| {' | '.join(HEAD)} |" in section
    assert "| 13 | 1 producer, window 1, receipts | CPU per message | artemis_py at OLD | 20.00 µs |" in section
    assert "Not measured: NATS core (no nats-server)." in section


def test_builds_are_compared_without_a_goal() -> None:
    builds = Goals(BUILDS, [measured(ArtemisPy(), [{CPU: 20.0}]), measured(OnAsyncio(), [{CPU: 40.0}])], [])
    assert builds.missed == []
    rows = {row[0]: row for row in builds.tables()[0].rows if row[3] == "artemis_py on asyncio"}
    assert rows["13"][4:] == ["20.00 µs", "40.00 µs", "0.50 ×"]


def test_an_older_version_is_compared_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLD", raising=False)
    assert {goal.peer for goal in wanted(GOALS)} == {"relay", "redis", "artemis", "nats", "artemis_py"}
    monkeypatch.setenv("OLD", "HEAD")
    assert wanted(GOALS) == list(GOALS)


def test_with_pairs_each_scenario_is_for_some_and_has_its_own_start(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr("bench.driver._measure_group", lambda *_: None)
    wanted = {"1": {"artemis_py", "relay"}, "2": {"artemis_py"}}
    measure([ArtemisPy(), Relay()], ["1", "2"], Options(), 1, started.append, wanted)
    assert started == [
        "round 1 of 1: artemis_py, scenario 1",
        "round 1 of 1: relay in C, scenario 1",
        "round 1 of 1: artemis_py, scenario 2",
    ]


# ---- peers that are not here, or are -----------------------------------------------------------------


@pytest.mark.parametrize(("broker", "variable"), [(Nats, "NATS_SERVER"), (Redis, "REDIS_SERVER")])
def test_a_program_that_is_not_here_is_named(
    broker: type[Broker], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "/no/such/program")
    reason = broker().absent()
    assert reason is not None
    assert variable in reason


@pytest.mark.parametrize("broker", [Nats(), Redis()])
def test_a_peer_with_a_protocol_of_its_own(broker: Broker) -> None:
    if (reason := broker.absent()) is not None:
        pytest.skip(reason)
    options = Options(messages=500, seconds=0.1, warmup_s=0.1)
    [found] = measure([broker], list(broker.scenarios), options, 1, lambda _: None)
    assert {name: outcome.failures for name, outcome in found.outcomes.items() if outcome.failures} == {}
    assert all(outcome.rounds[0]["messages"] == 500 for outcome in found.outcomes.values())


def test_an_older_version_needs_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("bench.own.CACHE", tmp_path)
    monkeypatch.delenv("OLD", raising=False)
    assert Older().absent() == "no OLD=commit or OLD=directory"
    monkeypatch.setenv("OLD", "nonsense")
    assert Older().absent() == "nonsense is no directory, and no commit of this repository"


def test_an_older_version_in_a_directory_is_the_one_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "artemis_py").mkdir()
    (tmp_path / "artemis_py" / "__init__.py").touch()
    (tmp_path / "artemis_py" / "version.py").write_text('VERSION = "0.0.7"\nIS_COMPILED = True\n')
    (tmp_path / "artemis_py__mypyc.here.so").touch()  # it need not be compiled
    monkeypatch.setenv("OLD", str(tmp_path))
    older = Older()
    assert older.absent() is None
    assert older.version() == f"0.0.7 of {tmp_path.name} (compiled)"


# ---- the relay ---------------------------------------------------------------------------------------


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Target]:
    broker = Relay()
    assert broker.absent() is None
    port = free_port()
    with running(broker.command(tmp_path, port), broker.target(port), 20, Progress().show):
        yield broker.target(port)


@needs_a_compiler
def test_the_relay_takes_frames_however_they_are_cut(relay: Target, tmp_path: Path) -> None:
    with Link(relay) as producer, Link(relay) as consumer:
        consumer.subscribe("/queue/a", "mine")
        sent = (
            b"\n\nSEND\nreceipt:1\ndestination:/queue/a\ncontent-length:3\n\na\0b\0"
            b"SEND\ndestination:/queue/a\nreceipt:2\npersistent:true\n\nsafe\0\n"
        )
        for place in range(len(sent)):
            producer.send(sent[place : place + 1])
        found = [consumer.next_frame("a message") for _ in range(2)]
        assert [one.body for one in found] == [b"a\0b", b"safe"]
        assert {(one.headers["subscription"], one.headers["destination"]) for one in found} == {("mine", "/queue/a")}
        assert all("receipt" not in one.headers for one in found)
        assert [producer.next_frame("a receipt").headers["receipt-id"] for _ in range(2)] == ["1", "2"]
    assert b"persistent:true\n\nsafe\0" in (tmp_path / "log").read_bytes()


@needs_a_compiler
def test_the_relay_keeps_what_nobody_reads_yet(relay: Target) -> None:
    with Link(relay) as producer, Link(relay) as consumer:
        for body in (b"one", b"two"):
            producer.confirmed("SEND", (("destination", "/queue/later"),), body)
        consumer.subscribe("/queue/later", confirm=False)
        assert [consumer.next_frame("a message").body for _ in range(2)] == [b"one", b"two"]


@needs_a_compiler
def test_a_topic_of_the_relay_goes_to_all_who_are_still_there(relay: Target) -> None:
    with Link(relay) as producer, Link(relay) as stays:
        stays.subscribe("/topic/t")
        with Link(relay) as leaves:
            leaves.subscribe("/topic/t")
            producer.confirmed("SEND", (("destination", "/topic/t"),), b"both")
            assert [link.next_frame("a message").body for link in (stays, leaves)] == [b"both", b"both"]
        producer.confirmed("SEND", (("destination", "/topic/t"),), b"one")
        assert stays.next_frame("a message").body == b"one"


# ---- Redis, in pieces --------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 1000, 100_000])
def test_answers_of_redis_may_be_cut_anywhere(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    def entries(*numbers: int) -> bytes:
        rows = [b"*2\r\n$5\r\n%03d-0\r\n*2\r\n$4\r\nbody\r\n$6\r\nthe-%02d\r\n" % (one, 0) for one in numbers]
        return b"*1\r\n*2\r\n$1\r\nq\r\n*%d\r\n" % len(rows) + b"".join(rows)

    link = RedisLink.__new__(RedisLink)
    link.target = Target("127.0.0.1", 1)
    heard: list[bytes] = []
    monkeypatch.setattr(RedisSink, "receive", lambda _: heard.pop())
    sink = RedisSink(link, "q", b"the-00\r\n")
    read = command("XREADGROUP", "GROUP", "readers", "one", "COUNT", COUNT, "BLOCK", 0, "STREAMS", "q", ">")
    assert sink.unsent == read
    sink.unsent.clear()
    sink.expected = 151
    for answer in (entries(*range(150)), b":100\r\n:50\r\n", entries(150), b":1\r\n"):
        for start in range(0, len(answer), step):
            heard.append(answer[start : start + step])
            assert sink.take()
    assert (sink.received, sink.awaited) == (151, 0)
    acked = [b"%03d-0" % number for number in range(151)]
    assert sink.unsent == b"".join(
        (
            command("XACK", "q", "readers", *acked[:100]),
            command("XACK", "q", "readers", *acked[100:150]),
            read,
            command("XACK", "q", "readers", acked[150]),
            read,
        )
    )
