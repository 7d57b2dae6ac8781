"""The process itself: what it says, how it starts, how it stops, and what it does with a file that is wrong."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.client import StompSocket, connected, frame, is_greeted
from tests.kit.forks import COMMAND, run_text
from tests.kit.ports import free_port
from tests.kit.process import (
    HTTP,
    LOOPBACK,
    STOMP,
    STOP_S,
    WAIT_S,
    BrokerProcess,
    configuration,
    running,
    started,
)

pytestmark = pytest.mark.e2e

SCRIPT = str(Path(sys.executable).with_name("artemis-py"))


# ---- start ---------------------------------------------------------------------------------------


def test_start_says_where_it_listens(start_broker: Callable[[str], BrokerProcess]) -> None:
    broker = start_broker(configuration({"stomp": STOMP, "second": STOMP, "http": HTTP}))
    said = broker.said
    assert set(broker.ports) == {"stomp", "second", "http"}
    for name, protocol in (("stomp", "STOMP"), ("second", "STOMP"), ("http", "HTTP")):
        assert f" BRK-1002 acceptor={name} listening on {LOOPBACK}:{broker.ports[name]} for {protocol}\n" in said
    for name in ("stomp", "second"):
        with connected(broker.ports[name]) as client:
            client.nothing_waits()


def test_the_first_client_of_a_new_python_is_greeted(tmp_path: Path) -> None:
    """How soon: the row "start to first CONNECTED" of make bench."""
    file = tmp_path / "broker.xml"
    file.write_text(configuration({"stomp": STOMP}), "utf-8")
    with started(file, anew=True) as broker:
        assert is_greeted(broker.port)


@pytest.mark.parametrize("command", [(SCRIPT,), COMMAND], ids=["artemis-py", "python -m artemis_py"])
def test_both_names_of_the_command(command: tuple[str, ...]) -> None:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert re.fullmatch(r"artemis-py \d+\.\d+\S* \((compiled|interpreted)\)\n", done.stdout)
    assert done.stderr == ""


def test_protocols_that_are_not_spoken_are_reported_once(start_broker: Callable[[str], BrokerProcess]) -> None:
    artemis = "tcp://127.0.0.1:0?protocols=CORE,AMQP,STOMP,HORNETQ,MQTT,OPENWIRE;useEpoll=true;amqpCredits=1000"
    broker = start_broker(configuration({"stomp": artemis, "mqtt": "tcp://127.0.0.1:0?protocols=MQTT"}))
    with connected(broker.port) as client:
        client.nothing_waits()
    assert "mqtt" not in broker.ports
    for name in ("CORE", "AMQP", "OPENWIRE"):
        assert sum(name in line for line in broker.said.splitlines()) == 1


def test_only_an_open_broker_binds_other_than_loopback(start_broker: Callable[[str], BrokerProcess]) -> None:
    everywhere = {"stomp": "tcp://0.0.0.0:0?protocols=STOMP", "inside": STOMP}
    text = configuration(everywhere)
    guarded = start_broker(configuration(everywhere, security="<security-settings/>"))
    assert set(guarded.ports) == {"inside"}
    assert re.search(r"warning\[acceptor-closed\]: .*acceptor 'stomp' is not opened: .*security", guarded.said)
    assert set(start_broker(text).ports) == {"stomp", "inside"}


def test_a_broker_that_nobody_can_send_to_is_not_ready(tmp_path: Path) -> None:
    file = tmp_path / "broker.xml"
    file.write_text(configuration({"http": HTTP}), "utf-8")
    with started(file, ready=False) as broker:
        broker.await_said("no client can connect")
        assert "warning[no-port]: " in broker.said
        broker.note_ports()
        answer = broker.ask("GET", "/health/ready")
        assert (answer.status, b"no port is open for STOMP" in answer.body) == (503, True)
        assert broker.stop() == 0


# ---- stop ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_clients_connected(tmp_path: Path, number: signal.Signals) -> None:
    with running(configuration(), tmp_path) as broker:
        idle, consumer, greeted_by_nobody = connected(broker.port), connected(broker.port), StompSocket(broker.port)
        consumer.subscribe("/queue/x")
        consumer.ask("SEND", {"destination": "/queue/x"}, b"unsettled")
        assert consumer.message().body == b"unsettled"
        assert broker.stop(number) == 0
        for client in (idle, consumer, greeted_by_nobody):
            assert client.read_to_end() == []
        assert not is_greeted(broker.port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_up_to_the_very_end_change_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """A supervisor that asks again is no reason to end in any other way."""
    with running(configuration({"stomp": STOMP}), tmp_path) as broker:
        broker.process.send_signal(signal.SIGTERM)
        while broker.process.poll() is None:
            broker.process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                broker.process.wait(0.001)
        assert broker.process.poll() == 0, broker.said
        assert "Traceback" not in broker.said


def test_clients_that_do_not_read_do_not_keep_it_from_stopping(tmp_path: Path) -> None:
    with running(configuration({"stomp": STOMP}), tmp_path) as broker:
        stalled = StompSocket(broker.port, receive_buffer_bytes=4096)
        stalled.connect()
        stalled.subscribe("/queue/x", ack="auto")
        with connected(broker.port) as producer:
            for _ in range(1000):
                producer.send("SEND", {"destination": "/queue/x"}, b"x" * 10_000)
            producer.nothing_waits()
        broker.process.send_signal(signal.SIGTERM)
        assert broker.process.wait(STOP_S) == 0
        stalled.close()


def test_answers_under_way_arrive_before_the_end(tmp_path: Path) -> None:
    with running(configuration({"stomp": STOMP}), tmp_path) as broker:
        client = connected(broker.port)
        client.raw(b"".join(frame("SEND", {"destination": "/queue/x", "receipt": n}) for n in range(500)))
        first = client.expect("RECEIPT")
        assert broker.stop() == 0
        answered = [first, *client.read_to_end()]
        assert [got.header("receipt-id") for got in answered] == [str(n) for n in range(len(answered))]


# ---- refusals ------------------------------------------------------------------------------------

# what is replaced, by what, and the text whose line is to blame
BROKEN = {
    "an unknown element": ("<name>e2e</name>", "<name>e2e</name><nmae>x</nmae>", "<nmae>"),
    "a wrong value": ("<persistence-enabled>false", "<persistence-enabled>perhaps", "perhaps"),
    "a wrong ring": (
        "<addresses>",
        '<addresses><address name="a"><anycast>\n<queue name="q" ring-size="x"/></anycast></address>',
        "ring-size",
    ),
}


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "broker.xml"
    text = configuration({"stomp": f"tcp://{LOOPBACK}:{port}?protocols=STOMP"})
    for right, wrong, _ in BROKEN.values():
        assert right in text
        text = text.replace(right, wrong)
    file.write_text(text, "utf-8")
    done = run_text(["run", str(file)], timeout=WAIT_S)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    blamed = re.findall(r"^\S*broker\.xml:(\d+): ", done.stderr, re.MULTILINE)
    assert set(map(int, blamed)) == {text[: text.index(part)].count("\n") + 1 for _, _, part in BROKEN.values()}
    assert len(set(blamed)) == 3
    assert "listening" not in done.stderr
    assert not is_greeted(port)


def test_a_port_in_use_is_told(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        file = tmp_path / "broker.xml"
        file.write_text(configuration({"free": STOMP, "taken": f"tcp://{LOOPBACK}:{port}?protocols=STOMP"}), "utf-8")
        done = run_text(["run", str(file)], timeout=WAIT_S)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        assert re.search(rf"broker\.xml:\d+: .*{port}", done.stderr), done.stderr
        assert "taken" in done.stderr
        assert "listening on" not in done.stderr
