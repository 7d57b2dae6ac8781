"""The sink's client against a real broker, behind connections that break; no JVM."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from artemis_py.errors import PipelineError
from artemis_py.spark.write.options import sink_options
from artemis_py.spark.write.send_frames import SendPlan, send_plan
from artemis_py.spark.write.sink import Published, publish, warn_of_ids, warn_of_losses
from tests.kit.client import connected
from tests.kit.ports import free_port
from tests.kit.process import LOOPBACK, STOMP, BrokerProcess, eventually
from tests.spark.brokers import added, bodies, crashing_broker, drained, url_of
from tests.spark.faulty import STEPS, FaultySender
from tests.spark.proxies import cutting

ROWS = [f"row-{number:04}" for number in range(100)]
SCHEMA = t.StructType([t.StructField("value", t.StringType())])


def plan_for(port: int, address: str, **options: str) -> SendPlan:
    given = {
        "url": f"tcp://127.0.0.1:{port}",
        "address": address,
        "timeout": "20 s",
        "rowsPerTransaction": "30",
        **options,
    }
    return send_plan(SCHEMA, sink_options(given))


def published(plan: SendPlan, task_id: str | None = None, rows: list[str] = ROWS) -> Published:
    return publish([pa.record_batch({"value": rows})], plan, task_id or str(uuid.uuid4()))


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """A server that takes what comes and says this, one answer for each connection; gives its port."""
    with socket.create_server((LOOPBACK, 0)) as listener:

        def serve() -> None:
            for answer in answers:
                client, _ = listener.accept()
                with client:
                    client.recv(65536)
                    client.sendall(answer)
                    while client.recv(65536):
                        pass

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def test_rows_arrive_in_order(sink_broker: BrokerProcess, place: str) -> None:
    done = published(plan_for(sink_broker.port, place))
    assert (done.rows, done.transactions, done.duplicates, done.id_cache_size) == (100, 4, 0, 20000)
    assert bodies(drained(sink_broker, place, 100)) == ROWS


def test_a_task_that_runs_again_publishes_nothing(sink_broker: BrokerProcess, place: str) -> None:
    plan = plan_for(sink_broker.port, place)
    published(plan, "again")
    done = published(plan, "again")
    assert (done.transactions, done.duplicates) == (4, 4)
    assert added(sink_broker, place) == 100


def test_one_transaction_may_come_in_another_order(sink_broker: BrokerProcess, place: str) -> None:
    """A shuffle hands rows over as they arrive; when a partition is one transaction that changes nothing."""
    plan = plan_for(sink_broker.port, place, rowsPerTransaction="100")
    published(plan, "order")
    assert published(plan, "order", ROWS[::-1]).duplicates == 1
    assert added(sink_broker, place) == 100


def test_another_order_over_several_transactions_is_an_error(sink_broker: BrokerProcess, place: str) -> None:
    """Whatever the sink did with such rows, some would be lost or doubled."""
    plan = plan_for(sink_broker.port, place)
    published(plan, "mixed", ROWS[:60])
    with pytest.raises(PipelineError, match="sortWithinPartitions"):
        published(plan, "mixed", [*ROWS[40:60], *ROWS[:40], *ROWS[60:]])
    with pytest.raises(PipelineError, match="with other messages"):
        published(plan_for(sink_broker.port, place, rowsPerTransaction="50"), "mixed")
    assert added(sink_broker, place) == 60


def test_two_attempts_at_once(sink_broker: BrokerProcess, place: str) -> None:
    """Speculation, or an executor that was given up and still runs."""
    plan = plan_for(sink_broker.port, place, rowsPerTransaction="1")
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(published, plan, "twins") for _ in range(2)]
        assert sum(one.result(30).duplicates for one in results) == 100
    assert sorted(bodies(drained(sink_broker, place, 100))) == ROWS


@pytest.mark.parametrize("step", [*STEPS, "after RECEIPT"])
def test_an_attempt_that_fails_and_the_next_one(
    sink_broker: BrokerProcess, place: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    first = SimpleNamespace(get=lambda: SimpleNamespace(attemptNumber=lambda: 0))
    monkeypatch.setattr("tests.spark.faulty.TaskContext", first)
    plan, task_id = plan_for(sink_broker.port, place), f"{step}.raise.{place}"
    with pytest.raises(RuntimeError, match=f"this attempt fails {step}"):
        publish([pa.record_batch({"value": ROWS})], plan, task_id, FaultySender)
    assert published(plan, task_id).transactions == 4
    assert bodies(drained(sink_broker, place, 100)) == ROWS


def test_nothing_to_write() -> None:
    """Nobody is asked."""
    assert published(plan_for(free_port(), "a"), rows=[]) == Published(0, 0, 0, None, ids_persisted=True)


CUTS = {
    "connecting": (b"CONNECT", False, 1),
    "before BEGIN": (b"BEGIN", False, 2),
    "after BEGIN": (b"SEND", False, 31),
    "after some SENDs": (b"row-0045", False, 1),
    "before COMMIT": (b"COMMIT", False, 2),
    "in COMMIT": (b"_AMQ_DUPL_ID", False, 3),
    "before the first RECEIPT": (b"RECEIPT", True, 1),
    "before the last RECEIPT": (b"RECEIPT", True, 4),
    "in a RECEIPT": (b"id-cache-size", True, 2),
}


@pytest.mark.parametrize("where", CUTS)
def test_a_connection_that_breaks(sink_broker: BrokerProcess, place: str, where: str) -> None:
    """Everything that was not confirmed is sent again, and happens once."""
    word, from_broker, nth = CUTS[where]
    with cutting(sink_broker.port, word, from_broker=from_broker, nth=nth) as proxy:
        done = published(plan_for(proxy.port, place), f"cut {where}")
        assert proxy.connections == 2
    assert (done.rows, done.transactions) == (100, 4)
    assert done.duplicates >= from_broker  # what was committed and not confirmed was sent again
    assert bodies(drained(sink_broker, place, 100)) == ROWS


def test_the_next_place_when_one_fails(sink_broker: BrokerProcess, place: str) -> None:
    dead_port = free_port()
    url = f"tcp://127.0.0.1:{dead_port},{url_of(sink_broker)}"
    assert published(plan_for(0, place, url=url)).rows == 100
    assert bodies(drained(sink_broker, place, 100)) == ROWS


def test_a_broker_that_is_down_is_an_error_after_a_time() -> None:
    port = free_port()
    with pytest.raises(
        PipelineError, match=rf"tcp://127.0.0.1:{port}: nothing was confirmed for 0.3 s .*is the broker running"
    ):
        published(plan_for(port, "a", timeout="300 ms"))


def test_a_broker_that_says_nothing_is_an_error_after_a_time() -> None:
    with answering(b"") as port, pytest.raises(PipelineError, match=r"nothing was confirmed for 0.3 s"):
        published(plan_for(port, "a", timeout="300 ms"))


def test_a_broker_that_comes_up_late(tmp_path: Path, place: str) -> None:
    port = free_port()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(published, plan_for(port, place))
        with crashing_broker(tmp_path, stomp=STOMP.replace(":0?", f":{port}?")) as late:
            assert done.result(20).rows == 100
            assert bodies(drained(late.process, place, 100)) == ROWS


def test_a_login_that_is_refused() -> None:
    """At once: another attempt would be refused, too."""
    error = b"ERROR\nmessage:Security Error occurred\\c User is unknown\n\n\0"
    with (
        answering(error) as port,
        pytest.raises(PipelineError, match="refuses the connection to user 'me' of options user, password: Sec"),
    ):
        published(plan_for(port, "a", user="me", password="wrong"))


def test_no_room_for_another_connection_is_waited_for(sink_broker: BrokerProcess, place: str) -> None:
    error = b"ERROR\nmessage:This acceptor allows 1 connection\n\n\0"
    with answering(error) as port:
        url = f"tcp://127.0.0.1:{port},{url_of(sink_broker)}"
        assert published(plan_for(0, place, url=url)).rows == 100


def test_rows_that_come_slower_than_the_broker_waits(tmp_path: Path, place: str) -> None:
    """The acceptor closes connections that are silent; the next transaction opens another."""
    with crashing_broker(tmp_path, stomp=f"{STOMP};connectionTtl=200") as live:
        broker = live.process

        def batches() -> Iterator[pa.RecordBatch]:
            for start in (0, 30, 60):
                yield pa.record_batch({"value": ROWS[start : start + 31]})
                if start == 30:
                    broker.await_metric(0, "artemis_connection_count")

        done = publish(batches(), plan_for(broker.port, place, rowsPerTransaction="31"), "slow")
        assert (done.rows, done.transactions) == (93, 3)
        broker.await_count(place, 93)


def test_large_rows_are_transactions_of_their_own(sink_broker: BrokerProcess, place: str) -> None:
    rows = [str(number) * 300_000 for number in range(5)]
    assert published(plan_for(sink_broker.port, place, bytesPerTransaction="100KiB"), rows=rows).transactions == 5
    assert bodies(drained(sink_broker, place, 5)) == rows


def test_a_broker_that_knows_no_ids_is_noticed() -> None:
    with answering(b"CONNECTED\nversion:1.2\n\n\0RECEIPT\nreceipt-id:1\n\n\0") as port:
        assert published(plan_for(port, "a", rowsPerTransaction="100")).id_cache_size is None


def test_a_receipt_for_nothing_is_an_error() -> None:
    with (
        answering(b"CONNECTED\nversion:1.2\n\n\0RECEIPT\nreceipt-id:7\n\n\0") as port,
        pytest.raises(PipelineError, match="was not sent: 7"),
    ):
        published(plan_for(port, "a"))


def test_a_full_address_with_fail_is_an_error(sink_broker: BrokerProcess) -> None:
    """Of the transaction that does not fit nothing arrives."""
    plan = plan_for(sink_broker.port, "fails.a", rowsPerTransaction="3")
    with pytest.raises(PipelineError, match=r"Address fails\.a is full: consume messages"):
        published(plan)
    assert added(sink_broker, "fails.a") == 3


def test_a_full_address_with_block_is_waited_for(sink_broker: BrokerProcess) -> None:
    plan = plan_for(sink_broker.port, "blocks.a", rowsPerTransaction="3")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(published, plan, "block")
        eventually("the address is full", lambda: added(sink_broker, "blocks.a"), lambda count: count == 6)
        with connected(sink_broker.port) as client:
            client.subscribe("blocks.a", ack="auto", subscription_type="ANYCAST")
            assert bodies([client.message() for _ in ROWS]) == ROWS
            client.nothing_waits()
        assert done.result(20).rows == 100


def test_a_full_address_with_block_is_an_error_after_a_time(sink_broker: BrokerProcess) -> None:
    plan = plan_for(sink_broker.port, "blocks.b", rowsPerTransaction="3", timeout="300 ms")
    with pytest.raises(PipelineError, match=r"nothing was confirmed for 0.3 s .*is the address full with policy BLOCK"):
        published(plan)
    assert added(sink_broker, "blocks.b") == 6


def test_a_transaction_larger_than_the_broker_allows(tmp_path: Path) -> None:
    with crashing_broker(tmp_path, stomp=f"{STOMP};maxTransactionBytes=20000") as live:
        port = live.process.port
        with pytest.raises(PipelineError, match="lower bytesPerTransaction or rowsPerTransaction"):
            published(plan_for(port, "a", rowsPerTransaction="100"), rows=["x" * 1000] * 100)
        assert published(plan_for(port, "a", bytesPerTransaction="5000"), rows=["x" * 1000] * 100).rows == 100


def test_nothing_is_doubled_over_a_restart_of_the_broker(tmp_path: Path, place: str) -> None:
    """Its ids are in the journal: it is killed between two attempts of a task."""
    with crashing_broker(tmp_path) as crashing:
        published(plan_for(crashing.process.port, place), "kept", ROWS[:60])
        crashing.start_again()
        done = published(plan_for(crashing.process.port, place), "kept", [*ROWS[:60], "one more"])
        assert (done.transactions, done.duplicates) == (3, 2)
        assert bodies(drained(crashing.process, place, 61)) == [*ROWS[:60], "one more"]


# ---- warnings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        ([(50, 200, True), (50, 200, True)], None),
        (
            [(50, 200, True), (51, 200, True)],
            "A batch was published in 101 transactions, but the broker remembers only 200 ids",
        ),
        ([(1, None, True)], "remembers no transaction ids"),
        ([(1, 200, False)], "persist-id-cache is false"),
        ([(0, None, True)], None),
    ],
)
def test_too_few_ids_are_told(
    caplog: pytest.LogCaptureFixture, reports: list[tuple[int, int | None, bool]], said: str | None
) -> None:
    warn_of_ids([Published(1, count, 0, size, persisted) for count, size, persisted in reports])
    assert (said or "") in caplog.text
    assert bool(caplog.text) == (said is not None)


def test_rows_that_are_on_no_queue_are_told(
    sink_broker: BrokerProcess, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A new address of routing type MULTICAST has no queue."""
    there = published(plan_for(sink_broker.port, place))
    nowhere = published(plan_for(sink_broker.port, f"{place}.new", routingType="MULTICAST"))
    assert (there.nowhere, nowhere.nowhere, nowhere.rows) == (0, 100, 100)
    warn_of_losses([there])
    assert not caplog.text
    warn_of_losses([there, nowhere])
    assert "100 of 200 rows are on no queue" in caplog.text
