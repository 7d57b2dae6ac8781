from __future__ import annotations

import subprocess
import sys
import time

import pytest

from artemis_py.errors import PerfError
from artemis_py.perf.process import ProcessTree, machine_cpu_s

# The last of three burns CPU time and holds memory, says so, and waits for the end of its input.
GRANDCHILD = """
import time
held = bytearray(b"x") * 30_000_000
while time.process_time() < 0.3: pass
print("ready", flush=True)
input()
"""
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {GRANDCHILD!r}])"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


def test_a_tree_includes_children_and_ends() -> None:
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    tree = ProcessTree(process.pid)
    assert process.stdout.readline() == b"ready\n"
    usage = tree.usage()
    assert usage.cpu_s >= 0.25
    assert usage.resident_bytes > 30_000_000
    process.stdin.write(b"\n")
    process.stdin.close()
    process.wait()
    process.stdout.close()
    with pytest.raises(PerfError, match="does not exist"):
        tree.usage()


def test_the_machine_counts_what_this_process_burns() -> None:
    before = machine_cpu_s()
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert machine_cpu_s() - before >= 0.15


def test_an_unknown_process_is_refused() -> None:
    with pytest.raises(PerfError):
        ProcessTree(2**22 + 1)
