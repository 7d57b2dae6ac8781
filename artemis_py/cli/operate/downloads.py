"""Writes what a broker sends as a file: to a new file, or to standard output."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

from artemis_py.cli.broker_http import BrokerHttp
from artemis_py.errors import ArtemisError
from artemis_py.shown import escaped


def save(broker: BrokerHttp, path: str, output: str | None) -> None:
    """Write the answer to the request of ``path`` to the file ``output``; None: to standard output, where a terminal
    gets nothing that could be an order to it. Raises ArtemisError.
    """
    if output is None:
        broker.fetch(path, _shows if sys.stdout.isatty() else sys.stdout.buffer.write)
        sys.stdout.flush()
        return
    try:
        with open(output, "xb") as file, ExitStack() as unfinished:
            unfinished.callback(os.unlink, output)
            broker.fetch(path, file.write)
            file.flush()
            unfinished.pop_all()
    except OSError as error:
        raise ArtemisError(f"{output} cannot be written: {error.strerror}") from None


def _shows(piece: bytes) -> None:
    lines = piece.decode(errors="replace").split("\n")
    sys.stdout.write("\n".join(escaped(line) for line in lines))
