"""Spark's Python processes in a tenth of the time: a server that has imported what they need forks each of them. They
are processes of their own, with the same modules, arguments, descriptors and environment; every stream has one, every
pool of workers and every worker. Tests whose Java is a program of its own have a new Python for each.

``python -m tests.spark.forked_python SOCKET`` is the server. ``python tests/spark/forked_python.py SOCKET -m MODULE …``
stands for ``python -m MODULE …``: it hands over its descriptors and waits.
"""

import json
import os
import signal
import socket
import sys

IMPORTED = (
    "artemis_py.spark.consume.reader",
    "artemis_py.spark.jobs.delta",
    "artemis_py.spark.read.aggregated_tables",
    "artemis_py.spark.read.batch",
    "artemis_py.spark.source",
    "artemis_py.spark.stream.reader",
    "artemis_py.spark.write.sink",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.worker",
)
_ASKED_MAX = 1 << 20


def stand_in(place: str, arguments: list[str]) -> int:
    """Returns the exit code of the forked process. Where this one gets SIGTERM or SIGKILL, that one does."""
    asked = json.dumps({"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        signal.signal(signal.SIGTERM, lambda *_: server.send(b"SIGTERM"))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ASKED_MAX)
        server.connect(place)
        socket.send_fds(server, [asked], [0, 1, 2])
        for number in range(3):
            os.close(number)
        return int(server.recv(16) or b"1")


def serve(place: str) -> None:
    """Forks, until whoever started this closes its standard input."""
    import gc
    import importlib
    import select

    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            ready, _, _ = select.select([0, listener.fileno()], [], [])
            if 0 in ready:
                return
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                guard(client)
                return
            client.close()


def guard(client: socket.socket) -> None:
    """Forks the process, tells its exit code, and ends it with the one that it stands for. Returns in both."""
    import select

    text, descriptors, _, _ = socket.recv_fds(client, _ASKED_MAX, 3)
    asked = json.loads(text)
    process_id = os.fork()
    if process_id == 0:
        client.close()
        become(descriptors, **asked)
        return
    for number in descriptors:
        os.close(number)
    ended, has_client = os.pidfd_open(process_id), True
    while ended not in select.select([ended, client.fileno()] if has_client else [ended], [], [])[0]:
        has_client = bool(client.recv(16))  # nothing: it was killed
        os.kill(process_id, signal.SIGTERM if has_client else signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])
    if has_client:
        client.send(b"%d" % (code & 255))


def become(descriptors: list[int], arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Does what ``python`` does with these arguments."""
    import random
    import runpy

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    random.seed()
    own = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*own, *(path for path in sys.path if path not in own)]
    option, module, *rest = arguments
    assert option == "-m"
    sys.argv[:] = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(stand_in(sys.argv[1], sys.argv[2:]))
