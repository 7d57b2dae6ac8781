"""``artemis-py ha``: can two brokers share a directory? Tried with the broker's own lock."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from artemis_py.cli.options import add_json
from artemis_py.errors import ArtemisError
from artemis_py.storage.disk.disk import DiskError, LockedError
from artemis_py.storage.disk.lock_check import (
    BETWEEN_MACHINES,
    FileSystem,
    Finding,
    file_system_of,
    hold_lock,
    trials,
)
from artemis_py.terminal_output import as_json, say, say_at_once, warn

HELP: Final = "try whether two brokers can share a directory"
EXIT_CODES: Final = (
    "exit codes: 0 the file system keeps a second process out; 1 it does not, or not reliably: do not run two brokers "
    "on it; 2 nothing could be tried"
)
EXIT_NO: Final = 1
EXIT_UNTRIED: Final = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``check DIR [--json]`` and ``hold DIR``."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="check|hold")
    check = commands.add_parser("check", help="try it with two processes", epilog=EXIT_CODES)
    add_json(check, "one object")
    held = commands.add_parser(
        "hold", help="hold the lock until Ctrl-C, so that a check on another machine can try to get it"
    )
    for each in (check, held):
        each.add_argument("directory", type=Path, metavar="DIR", help="the directory that two brokers are to share")


def run(args: argparse.Namespace) -> int:
    """Returns the exit code."""
    directory: Path = args.directory
    try:
        if args.command == "hold":
            hold_lock(directory, say_at_once)
        return _check(directory, as_object=args.format == "json")
    except (DiskError, LockedError) as error:
        warn(error)
        return EXIT_UNTRIED


def _check(directory: Path, *, as_object: bool) -> int:
    system = file_system_of(directory)
    if not as_object:
        say(f"{directory}: {_shown(system)}")
    findings: list[Finding] = []
    for finding in trials(directory, lambda: _HolderProcess(directory)):
        findings.append(finding)
        if not as_object:
            say(f"{_MARKS[finding.passed]}  {finding.told}")
    excludes = all(finding.passed is not False for finding in findings)
    verdict = _verdict(system, directory, findings, excludes=excludes)
    if as_object:
        trial = [{"name": each.name, "passed": each.passed, "told": each.told} for each in findings]
        say(
            as_json(
                {
                    "directory": str(directory),
                    "file_system": system.kind,
                    "source": system.source,
                    "local": system.is_local,
                    "excludes": excludes,
                    "trials": trial,
                    "verdict": verdict,
                }
            )
        )
    else:
        say(verdict)
    return 0 if excludes else EXIT_NO


_MARKS: Final = {True: "yes", False: "NO ", None: "   "}


def _shown(system: FileSystem) -> str:
    where = "of this machine" if system.is_local else "that other machines may share"
    return f"{system.kind} on {system.source or 'an unknown device'}, a file system {where}"


def _verdict(system: FileSystem, directory: Path, findings: Sequence[Finding], *, excludes: bool) -> str:
    if not excludes:
        return "Do not run two brokers on it: both would write, and destroy the journal."
    if any(finding.name == BETWEEN_MACHINES for finding in findings):
        return "Two brokers on these two machines can share it."
    if system.is_local:
        return "Two brokers on this machine can share it."
    return (
        "It keeps a second process of this machine out. To try two machines, run 'artemis-py ha hold "
        f"{directory}' on the other one, and this check again."
    )


class _HolderProcess:
    """``artemis-py ha hold``, from the moment when it has the lock. Raises ArtemisError if it does not get it."""

    def __init__(self, directory: Path) -> None:
        command = [sys.executable, "-m", "artemis_py", "ha", "hold", str(directory)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "held\n":
            _, error = self._process.communicate()
            raise ArtemisError(f"a process that is to hold the lock ended: {error.strip()}")

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
