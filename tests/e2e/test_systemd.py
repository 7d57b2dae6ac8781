"""What the process tells systemd, over a real socket; and the unit file."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.pair import HANDS_OVER, Pair
from tests.e2e.small_files import PERSISTENT, configured
from tests.kit.client import connected
from tests.kit.process import WAIT_S, BrokerProcess, started

pytestmark = pytest.mark.e2e

UNIT = Path(__file__).parents[2] / "packaging" / "systemd" / "artemis-py.service"


class Supervisor:
    """Where notifications arrive: a socket in a directory, or with a name that is in none."""

    def __init__(self, address: str) -> None:
        self.environment = {**os.environ, "NOTIFY_SOCKET": address}
        self.told: list[str] = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(WAIT_S)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)

    def until(self, wanted: str) -> list[str]:
        """Everything told up to the first line of which this is a part."""
        began, until_s = len(self.told), time.monotonic() + WAIT_S
        while not any(wanted in line for line in self.told[began:]):
            assert time.monotonic() < until_s, f"{wanted} is not among {self.told[began:]}"
            self.told += self.socket.recv(4096).decode().splitlines()
        return self.told[began:]


@contextmanager
def supervised(file: Path, supervisor: Supervisor) -> Iterator[BrokerProcess]:
    with (
        closing(supervisor.socket),
        started(file, ready=False, environment=supervisor.environment, anew=True) as broker,
    ):
        yield broker


def test_a_start_and_a_stop(tmp_path: Path) -> None:
    supervisor = Supervisor(str(tmp_path / "notify"))
    with supervised(configured(tmp_path), supervisor) as broker:
        supervisor.until("READY=1")
        broker.await_state("ready")
        assert "STATUS=ready: 0 addresses, 0 queues" in supervisor.told
        assert "STOPPING=1" not in supervisor.told
        assert broker.stop() == 0
        told = supervisor.until("EXTEND_TIMEOUT_USEC")
        assert {"STOPPING=1", "STATUS=stopping"} <= set(told)
        assert "WATCHDOG=1" not in supervisor.told, "nobody asked for it"


def test_the_watchdog_is_fed_by_the_event_loop(tmp_path: Path) -> None:
    """A broker that hangs feeds it no more; it is fed while a journal is read, too."""
    with supervised(configured(tmp_path), Supervisor(str(tmp_path / "first"))) as broker:
        broker.await_state("ready")
        with connected(broker.port) as client:
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"to be read")
    supervisor = Supervisor(f"@artemis-py-{os.getpid()}")
    supervisor.environment |= {"WATCHDOG_USEC": "200000"}
    with supervised(configured(tmp_path), supervisor) as broker:
        told = supervisor.until("STATUS=has read 1 of 1 journal files")
        supervisor.until("READY=1")
        assert any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in [*told, *supervisor.told])
        for _ in range(3):
            supervisor.until("WATCHDOG=1")
        broker.process.send_signal(signal.SIGSTOP)
        supervisor.socket.settimeout(0.4)
        with pytest.raises(TimeoutError):  # behind what has come already, nothing comes
            list(iter(partial(supervisor.socket.recv, 4096), b""))
        supervisor.socket.settimeout(WAIT_S)
        broker.process.send_signal(signal.SIGCONT)
        supervisor.until("WATCHDOG=1")


def test_a_watchdog_of_another_process_is_not_fed(tmp_path: Path) -> None:
    supervisor = Supervisor(str(tmp_path / "notify"))
    supervisor.environment |= {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": str(os.getpid())}
    with supervised(configured(tmp_path), supervisor) as broker:
        supervisor.until("READY=1")
        assert broker.stop() == 0
        supervisor.until("STOPPING=1")
        assert "WATCHDOG=1" not in supervisor.told


def test_a_stand_by_and_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit is started when its broker waits; what it does is its status."""
    with Pair(tmp_path) as pair:
        first = pair.start(settings=HANDS_OVER)
        supervisor = Supervisor(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", supervisor.environment["NOTIFY_SOCKET"])
        backup = pair.start("backup")
        waits = f"STATUS=stand-by: waits for the lock of process {first.process.pid} on host "
        assert "READY=1" in supervisor.until(waits)
        first.stop()
        supervisor.until("STATUS=takes over")
        supervisor.until("STATUS=ready: ")
        (pair.journal / "server.lock").unlink()
        assert "STOPPING=1" in supervisor.until("STATUS=storage failed: ")
        assert backup.process.wait(WAIT_S) == 3
        supervisor.socket.close()


def test_a_supervisor_that_does_not_listen_is_no_failure(tmp_path: Path) -> None:
    for address in (str(tmp_path / "none"), "vsock:2:1234", "relative"):
        environment = {**os.environ, "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "x"}
        made = "from artemis_py.server.lifecycle import Notifier; n = Notifier()"
        code = f"{made}; n.ready('x'); n.progress('x'); n.close()"
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=WAIT_S)


def test_the_unit_file(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not on this machine")
    command = Path(sys.executable).parent / "artemis-py"
    text = UNIT.read_text("utf-8")
    assert "ExecStart=/opt/artemis-py/bin/artemis-py run /etc/artemis-py/broker.xml\n" in text
    file = tmp_path / "artemis-py.service"
    file.write_text(text.replace("/opt/artemis-py/bin/artemis-py", str(command)), "utf-8")
    done = subprocess.run([analyze, "verify", str(file)], capture_output=True, text=True, check=False, timeout=WAIT_S)
    about_it = [line for line in done.stderr.splitlines() if "artemis-py" in line]
    assert (done.returncode, about_it) == (0, []), done.stderr
    file.write_text(text, "utf-8")
    without = subprocess.run(
        [analyze, "verify", str(file)], capture_output=True, text=True, check=False, timeout=WAIT_S
    )
    if not Path("/opt/artemis-py/bin/artemis-py").exists():
        assert "is not executable" in without.stderr, "it does look at the file"
