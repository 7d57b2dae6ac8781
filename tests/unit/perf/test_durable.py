"""The durable scenarios: what is sent, what is acknowledged, and what they notice."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.durable import RECEIPTS_OPEN_MAX, UNSENT_BYTES_MIN, Source, fill, group_of
from artemis_py.perf.link import Link, Target
from artemis_py.perf.process import syncs_of
from artemis_py.perf.scenario import Options, Run
from artemis_py.perf.sync import fdatasync_ns, median_us
from tests.kit.fake_broker import FakeBroker, Faults
from tests.kit.ports import free_port
from tests.kit.web_server import web_server
from tests.unit.perf.test_scenarios import MESSAGES, load, measure

CONFIGURATION = """\
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <journal-directory>{home}/journal</journal-directory>
  <paging-directory>{home}/paging</paging-directory>
  <large-messages-directory>{home}/large</large-messages-directory>
  <security-enabled>false</security-enabled>
  <max-disk-usage>-1</max-disk-usage>
  <acceptors><acceptor name="a">tcp://127.0.0.1:{port}?protocols=STOMP;anycastPrefix=/queue/</acceptor></acceptors>
</core></configuration>
"""


@pytest.mark.parametrize("scenario", ["3", "3i", "4", "11"])
def test_every_message_is_persistent(broker: FakeBroker, scenario: str) -> None:
    measure(scenario, load(broker))
    sends = broker.sends[:MESSAGES]
    assert [found.headers.get("persistent") for found in sends] == ["true"] * MESSAGES


@pytest.mark.parametrize(("scenario", "mode", "acks"), [("3", "client", 4), ("3i", "client-individual", MESSAGES)])
@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_receipts_and_acks(broker: FakeBroker, scenario: str, mode: str, acks: int, version: str) -> None:
    run = load(broker)
    run.target = Target("127.0.0.1", broker.port, version=version)
    measure(scenario, run)
    assert [place for place, found in enumerate(broker.sends) if "receipt" in found.headers] == [99, 199, 299, 399, 400]
    assert broker.subscribes[0].headers["ack"] == mode
    assert broker.acks == acks


@pytest.mark.parametrize("scenario", ["3", "3i"])
def test_frames_may_be_split_anywhere(scenario: str) -> None:
    with FakeBroker(Faults(chunk_bytes=7)) as broker:
        assert measure(scenario, load(broker))["messages"] == MESSAGES


def test_a_warm_up_in_whole_groups_is_not_measured(broker: FakeBroker) -> None:
    assert measure("3", load(broker, messages=250, warmup_s=1.0))["messages"] == 300
    assert len(broker.sends) == 300 + 100 + 1


@pytest.mark.parametrize("scenario", ["3", "3i"])
@pytest.mark.parametrize(
    ("faults", "complaint"),
    [
        (Faults(drop_at=100), "stalled.*399 of 400"),
        (Faults(double_at=100), "than were sent"),
        (Faults(double_at=MESSAGES), "than were sent"),
        (Faults(ignores_acks=True), "400 acknowledged messages were delivered again"),
        (Faults(error_at=200), "disk on fire"),
        (Faults(close_at=200), "closed|broke"),
        (Faults(receipts=False), "needs receipts"),
    ],
)
def test_what_is_noticed(scenario: str, faults: Faults, complaint: str) -> None:
    with FakeBroker(faults) as broker, pytest.raises(PerfError, match=complaint):
        measure(scenario, load(broker, stall_s=0.4))


def test_version_1_0_has_no_ack_that_would_do(broker: FakeBroker) -> None:
    run = load(broker)
    run.target = Target("127.0.0.1", broker.port, version="1.0")
    with pytest.raises(PerfError, match=r"1\.1 or 1\.2"):
        measure("3", run)


def test_one_producer_beside_the_disk(broker: FakeBroker, tmp_path: Path) -> None:
    metrics = measure("4", load(broker, directory=str(tmp_path)))
    assert metrics["sync_ratio"] == pytest.approx(metrics["p50_us"] / metrics["fdatasync_us"])
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_goes_silent_is_noticed_without_python_s_timeouts(broker: FakeBroker) -> None:
    with Link(Target("127.0.0.1", broker.port, stall_s=0.2)) as link:
        link.wait_in_kernel()
        assert link.sock.gettimeout() is None
        with pytest.raises(PerfError, match=r"sent no receipt within 0\.2 s"):
            link.receive("receipt")


def test_the_disk_is_measured(tmp_path: Path) -> None:
    took_ns = fdatasync_ns(str(tmp_path), 5)
    assert len(took_ns) == 5
    assert median_us([3000, 1000, 2000]) == 2.0
    with pytest.raises(PerfError, match="fdatasync cannot be measured"):
        fdatasync_ns(str(tmp_path / "absent"))


@pytest.mark.parametrize("scenario", ["3", "11"])
def test_messages_per_sync(broker: FakeBroker, scenario: str) -> None:
    line = '# TYPE artemis_journal_syncs gauge\nartemis_journal_syncs{{broker="b"}} {}\n'
    with web_server(line.format("10.0").encode(), line.format("18.0").encode()) as page:
        assert measure(scenario, load(broker, metrics_url=page.url))["messages_per_sync"] == MESSAGES / 8


def test_metrics_that_say_nothing_of_syncs(broker: FakeBroker) -> None:
    with web_server(b"artemis_message_count 1\n", b"\n") as page:
        assert "messages_per_sync" not in measure("3", load(broker, metrics_url=page.url))
    with pytest.raises(PerfError, match="no metrics at"):
        syncs_of(f"http://127.0.0.1:{free_port()}/metrics")


def test_recovery_of_a_real_broker(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "broker.xml"
    file.write_text(CONFIGURATION.format(home=tmp_path, port=port), encoding="utf-8")
    command = shlex.join([sys.executable, "-m", "artemis_py", "run", str(file)])
    run = Run(Target("127.0.0.1", port), Options(messages=450, start_command=command))
    metrics = measure("recovery", run)
    assert metrics["messages"] == 500
    assert metrics["records_per_second"] > 0


def test_messages_that_do_not_come_back_are_noticed(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "broker.xml"
    text = CONFIGURATION.format(home=tmp_path, port=port)
    off = text.replace("<security-enabled>", "<persistence-enabled>false</persistence-enabled><security-enabled>")
    file.write_text(off, encoding="utf-8")
    command = shlex.join([sys.executable, "-m", "artemis_py", "run", str(file)])
    run = Run(Target("127.0.0.1", port, stall_s=0.5), Options(messages=100, start_command=command))
    with pytest.raises(PerfError, match="received 0 of 100"):
        measure("recovery", run)


@pytest.mark.parametrize("scenario", ["10", "recovery"])
def test_the_start_command_is_needed(scenario: str) -> None:
    with pytest.raises(PerfError, match="--start-command"):
        measure(scenario, Run(Target("127.0.0.1", 1)))


def test_a_sender_has_more_ready_while_more_receipts_may_be_awaited(broker: FakeBroker) -> None:
    run = load(broker)
    groups = iter(range(1000))
    with Link(run.target) as link:
        source = Source(link, group_of(run.target, "/queue/q", bytes(100)))
        source.fill(groups)
        assert UNSENT_BYTES_MIN <= len(source.unsent) < 2 * UNSENT_BYTES_MIN
        while source.awaited < RECEIPTS_OPEN_MAX:
            source.unsent.clear()  # the socket took it
            source.fill(groups)
            assert source.unsent
        source.unsent.clear()
        source.fill(groups)
        assert not source.unsent
        assert source.awaited == RECEIPTS_OPEN_MAX


def test_all_receipts_at_once_do_not_end_the_filling(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one receipt awaited at a time none is awaited after each."""
    monkeypatch.setattr("artemis_py.perf.durable.RECEIPTS_OPEN_MAX", 1)
    fill(load(broker), "/queue/q", b"body", MESSAGES)
    assert len(broker.sends) == MESSAGES
