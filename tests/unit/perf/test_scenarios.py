from __future__ import annotations

import os
import socket
from unittest.mock import MagicMock

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.latency import BLOCKS, _neighbours
from artemis_py.perf.link import Link, Target
from artemis_py.perf.process import ProcessTree
from artemis_py.perf.registry import SCENARIOS, choose
from artemis_py.perf.scenario import Options, Run, check_broker, run_rounds, warm_up
from artemis_py.perf.sync import SyncProducers
from tests.kit.fake_broker import FakeBroker, Faults
from tests.kit.process import eventually

MESSAGES = 400


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artemis_py.perf.link.RECEIPTLESS_PAUSE_S", 0.05)
    monkeypatch.setattr("artemis_py.perf.pump.POLL_S", 0.05)
    monkeypatch.setattr("artemis_py.perf.sync.POLL_S", 0.05)


def load(broker: FakeBroker, stall_s: float = 20.0, **changes: object) -> Run:
    target = Target("127.0.0.1", broker.port, stall_s=stall_s, receipts=broker.faults.receipts)
    settings: dict[str, object] = {
        "messages": MESSAGES,
        "seconds": 0.2,
        "warmup_s": 0.0,
        "connections": 20,
        "rate": 4000.0,
    }
    return Run(target, Options(**(settings | changes)))  # type: ignore[arg-type]


def measure(scenario: str, run: Run) -> dict[str, float]:
    return choose([scenario])[0].run(run)


@pytest.mark.parametrize("scenario", ["1", "1s", "1u", "2", "3", "3i", "4", "5", "6", "6s", "8", "11", "12", "13"])
def test_every_message_is_counted(broker: FakeBroker, scenario: str) -> None:
    metrics = measure(scenario, load(broker))
    assert metrics["messages"] == MESSAGES
    assert metrics["messages_per_second"] > 0
    probes = scenario in ("3", "3i")  # one more message, to see that nothing comes again
    assert len(broker.sends) == (MESSAGES // 10 if scenario == "5" else MESSAGES + probes)


def test_frames_may_be_split_anywhere() -> None:
    with FakeBroker(Faults(chunk_bytes=7)) as broker:
        assert measure("1", load(broker))["messages"] == MESSAGES


def test_a_known_process_adds_its_cost(broker: FakeBroker) -> None:
    run = load(broker)
    run.process = ProcessTree(os.getpid())
    metrics = measure("1", run)
    assert {"cpu_s_per_million", "resident_mb", "other_load_percent"} <= set(metrics)
    assert metrics["other_load_percent"] >= 0


def test_the_warm_up_is_not_measured(broker: FakeBroker) -> None:
    assert measure("1", load(broker, warmup_s=1.0))["messages"] == MESSAGES
    assert len(broker.sends) == MESSAGES + MESSAGES // 10


def test_unique_headers_are_unique(broker: FakeBroker) -> None:
    measure("1u", load(broker))
    assert len({found.headers["correlation-id"] for found in broker.sends}) == MESSAGES


def test_sizes(broker: FakeBroker) -> None:
    measure("1", load(broker))
    measure("2", load(broker))
    measure("1", load(broker, size=5))
    assert {len(found.body) for found in broker.sends} == {100, 1024, 5}


@pytest.mark.parametrize("scenario", ["1", "1s", "1u", "2", "3", "3i", "4", "5", "6", "6s", "7", "8", "11", "12", "13"])
def test_no_two_messages_to_a_destination_have_the_same_body(broker: FakeBroker, scenario: str) -> None:
    measure(scenario, load(broker))
    sent = [(found.headers["destination"], found.body) for found in broker.sends]
    assert len(set(sent)) == len(sent)


@pytest.mark.parametrize(("distinct", "expected"), [(False, {"0"}), (True, {f"s{n}" for n in range(10)})])
def test_subscription_ids_of_a_topic(broker: FakeBroker, distinct: bool, expected: set[str]) -> None:
    measure("5", load(broker, distinct=distinct))
    assert {found.headers["id"] for found in broker.subscribes} == expected
    assert all(found.headers["destination"].startswith("/topic/") for found in broker.subscribes)


def test_lanes_are_separate(broker: FakeBroker) -> None:
    measure("6", load(broker))
    assert len({found.headers["destination"] for found in broker.sends}) == 20


def test_fill_and_drain(broker: FakeBroker) -> None:
    run = load(broker)
    run.process = ProcessTree(os.getpid())
    metrics = measure("7", run)
    assert metrics["messages"] == MESSAGES == len(broker.sends)
    assert {"fill_per_second", "drain_per_second", "bytes_per_message", "resident_mb"} <= set(metrics)


def test_fill_and_drain_of_one(broker: FakeBroker) -> None:
    assert measure("7", load(broker, messages=1))["messages"] == 1


def test_latency_has_percentiles_in_order(broker: FakeBroker) -> None:
    metrics = measure("8", load(broker))
    assert 0 < metrics["p50_us"] <= metrics["p99_us"] <= metrics["p999_us"] <= metrics["max_us"]


def test_idle_connections_are_all_open_at_once(broker: FakeBroker) -> None:
    run = load(broker)
    run.process = ProcessTree(os.getpid())
    metrics = measure("9", run)
    assert metrics["connects_per_second"] > 0
    assert "kb_per_connection" in metrics
    assert len(broker.connects) == 30


def test_without_a_number_of_messages_the_time_decides(broker: FakeBroker) -> None:
    metrics = measure("12", load(broker, messages=None, seconds=0.1))
    assert metrics["messages"] >= SyncProducers.producers


def test_the_number_of_messages_follows_the_rate_seen() -> None:
    run = Run(Target("127.0.0.1", 1), Options(seconds=3.0, warmup_s=1.0))
    batches: list[int] = []
    assert warm_up(run, lambda size: batches.append(size) or size / 10_000) == 30_000
    assert batches == [1000, 2000, 4000, 4000]


@pytest.mark.parametrize("scenario", ["1", "5", "6", "7", "8"])
def test_a_lost_message_is_a_stall_that_says_how_far_it_got(scenario: str) -> None:
    with FakeBroker(Faults(drop_at=100)) as broker, pytest.raises(PerfError, match=r"stalled.* received 399 of 400"):
        measure(scenario, load(broker, stall_s=0.4))


def test_a_lost_confirmed_message_is_noticed() -> None:
    with FakeBroker(Faults(drop_at=100)) as broker, pytest.raises(PerfError, match="received 399 of 400"):
        measure("12", load(broker, stall_s=0.4))


@pytest.mark.parametrize("scenario", ["1", "5", "6", "7", "8", "12"])
@pytest.mark.parametrize("at", [100, MESSAGES])
def test_a_message_too_many_is_noticed(scenario: str, at: int) -> None:
    with FakeBroker(Faults(double_at=at)) as broker, pytest.raises(PerfError, match=r"more|instead of"):
        measure(scenario, load(broker))


@pytest.mark.parametrize("scenario", ["1", "5", "7", "8", "12"])
def test_a_message_that_comes_after_the_last_is_noticed(scenario: str) -> None:
    with FakeBroker(Faults(extra_at_goodbye=True)) as broker, pytest.raises(PerfError, match="more"):
        measure(scenario, load(broker))


@pytest.mark.parametrize("scenario", ["1", "1s", "1u", "5", "6", "7", "8", "12"])
def test_an_error_frame_ends_the_scenario_with_its_text(scenario: str) -> None:
    with FakeBroker(Faults(error_at=200)) as broker, pytest.raises(PerfError, match="disk on fire"):
        measure(scenario, load(broker))


@pytest.mark.parametrize("scenario", ["1", "5", "7", "8"])
def test_a_closed_connection_is_noticed(scenario: str) -> None:
    with FakeBroker(Faults(close_at=200)) as broker, pytest.raises(PerfError, match=r"closed|broke"):
        measure(scenario, load(broker))


def test_a_refused_login_shows_the_reason() -> None:
    with FakeBroker(Faults(refuse_login=True)) as broker, pytest.raises(PerfError, match="bad login"):
        check_broker(load(broker).target)


def test_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(PerfError, match="connection refused"):
        check_broker(Target("127.0.0.1", port))


def test_without_receipts_some_scenarios_still_run() -> None:
    with FakeBroker(Faults(receipts=False)) as broker:
        assert measure("1", load(broker))["messages"] == MESSAGES
        for scenario in ("7", "12"):
            with pytest.raises(PerfError, match="receipts"):
                measure(scenario, load(broker))


def test_a_broker_that_sends_no_receipts_though_it_should() -> None:
    with FakeBroker(Faults(receipts=False)) as broker:
        run = load(broker)
        run.target = Target("127.0.0.1", broker.port, stall_s=0.1)
        with pytest.raises(PerfError, match="no RECEIPT of SUBSCRIBE within"):
            measure("1", run)


def test_headers_of_the_target_are_sent(broker: FakeBroker) -> None:
    target = Target(
        "127.0.0.1",
        broker.port,
        version="1.1",
        login="me",
        passcode="secret",
        connect_headers=(("host", "/"),),
        subscribe_headers=(("prefetch", "7"),),
        send_headers=(("priority", "9"),),
    )
    measure("1", Run(target, Options(messages=10, warmup_s=0)))
    headers = broker.connects[0].headers
    assert (headers["accept-version"], headers["host"], headers["login"], headers["passcode"]) == (
        "1.1",
        "/",
        "me",
        "secret",
    )
    assert broker.subscribes[0].headers["prefetch"] == "7"
    assert broker.sends[0].headers["priority"] == "9"


def test_version_1_0_names_no_version(broker: FakeBroker) -> None:
    Link(Target("127.0.0.1", broker.port, version="1.0")).close()
    assert broker.connects[0].headers == {}


def test_a_failing_scenario_does_not_stop_the_others() -> None:
    with FakeBroker(Faults(receipts=False)) as broker:
        failed, passed = run_rounds(choose(["7", "1"]), load(broker), 2)
    assert (len(failed.rounds), len(failed.failures)) == (0, 1)
    assert (len(passed.rounds), len(passed.failures)) == (2, 0)


@pytest.mark.parametrize("kind", ["tiny", "crlf", "headers", "selectors"])
def test_a_round_trip_is_measured_beside_neighbours(
    broker: FakeBroker, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbours = MagicMock()
    monkeypatch.setattr("artemis_py.perf.latency._neighbours", neighbours)
    monkeypatch.setattr("artemis_py.perf.latency.PERIOD_S", 0.0)
    metrics = measure(f"neighbours-{kind}", load(broker, messages=20, neighbours=3))
    assert metrics["messages"] == len(broker.sends) == 20
    assert 0 < metrics["p50_us"] <= metrics["p99_us"]
    ((_, greetings, flood),) = [call.args for call in neighbours.call_args_list]
    assert len(greetings) == 3
    assert flood.endswith(b"\0")
    assert (b"\r\n\r\n\0" in flood) == (kind == "crlf")
    frames = flood.split(b"\0")[:-1]
    assert (len(set(frames)) == len(frames) == BLOCKS) == (kind == "headers")
    assert all(greeting.count(b"SUBSCRIBE") == (50 if kind == "selectors" else 0) for greeting in greetings)


def test_neighbours_send_until_the_end(broker: FakeBroker) -> None:
    flood = b"SEND\ndestination:/topic/t\n\n\0" * 10
    target = Target("127.0.0.1", broker.port)
    with _neighbours(target, [b"", b""], flood):
        eventually("sends", lambda: len(broker.sends), lambda count: count > 40)


def test_neighbours_that_cannot_connect_are_an_error() -> None:
    target = Target("127.0.0.1", 1)
    with pytest.raises(PerfError, match="could not connect"), _neighbours(target, [b""], b"x"):
        pass


def test_the_table_of_scenarios() -> None:
    assert [scenario.id for scenario in choose(["all"])] == list(SCENARIOS)
    with pytest.raises(PerfError, match="unknown scenario 99"):
        choose(["1", "99"])
