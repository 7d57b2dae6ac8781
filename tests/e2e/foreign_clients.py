"""Clients in other languages: where their programs stand, how they get their libraries, and how they are run.

The libraries come through the languages' own package tools and stay below ``.cache/``; what this machine has not and
cannot get is ``Absent``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.kit.packages import Absent, attempt, folder_for, new_folder, taken_apart, tool
from tests.kit.sources import ROOT

PROGRAMS = ROOT / "tests" / "clients"
COMPILE_S_MAX = 600
RUN_S_MAX = 300

CHECKS = (
    "connects",
    "sends_and_receives_in_order",
    "acknowledges_all_before",
    "acknowledges_one",
    "refuses",
    "is_redelivered_after_a_lost_connection",
    "commits_and_aborts",
    "acknowledges_in_a_transaction",
    "keeps_heart_beats",
    "unsubscribes",
    "disconnects_with_a_receipt",
    "carries_bytes",
    "carries_awkward_headers",
    "hears_of_errors",
)
NOT_IN_1_0 = frozenset({"refuses", "keeps_heart_beats"})
VERSIONS = ("1.0", "1.1", "1.2")


@dataclass(frozen=True)
class Launch:
    """How a client's program is started; port, version and place follow the command."""

    command: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ForeignClient:
    """A client library and the program that exercises it. ``lacks``: what the library does not do."""

    name: str
    prepare: Callable[[], Launch]
    lacks: frozenset[str] = frozenset()

    def checks(self, version: str) -> list[str]:
        """What its program looks at in a STOMP version."""
        left_out = self.lacks | (NOT_IN_1_0 if version == "1.0" else frozenset())
        return [check for check in CHECKS if check not in left_out]

    def verdicts(self, port: int, place: str) -> dict[str, dict[str, str]]:
        """Runs the program once for each version, side by side: version → check → "ok" or what went wrong. Raises
        Absent.
        """
        launch = self.prepare()
        running = {}
        for version in VERSIONS:
            arguments = [str(port), version, f"{place}.{version}"]
            running[version] = subprocess.Popen(
                [*launch.command, *arguments],
                env={**os.environ, **launch.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        return {version: read_verdicts(process) for version, process in running.items()}


def read_verdicts(process: subprocess.Popen[str]) -> dict[str, str]:
    """What a program found, from its lines ``ok CHECK`` and ``failed CHECK: why``; under "" what else it said."""
    try:
        said, complained = process.communicate(timeout=RUN_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        said, complained = process.communicate()
    verdicts = {"": f"ended with {process.returncode}: {complained}"}
    for line in said.splitlines():
        verdict, _, rest = line.partition(" ")
        check, _, why = rest.partition(": ")
        verdicts[check] = "ok" if verdict == "ok" else why
    return verdicts


# ---- libraries -----------------------------------------------------------------------------------


def node_with(home: Path, *packages: str) -> tuple[str, Path]:
    """Node, and through npm what a manifest below the programs names, of which it has loaded these. Raises Absent."""
    node, npm = tool("node"), tool("npm")
    manifests = [home / "package.json", home / "package-lock.json"]
    target = folder_for(home.name, *manifests)
    if not target.exists():
        with new_folder(target) as folder:
            for manifest in manifests:
                shutil.copy(manifest, folder)
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=15000"]
            attempt([npm, "ci", *options], folder)
            for name in json.loads(manifests[0].read_text("utf-8"))["dependencies"]:
                if not (folder / "node_modules" / name).is_dir():
                    raise Absent(f"npm has not installed {name}")
    for package in packages:
        attempt([node, "-e", f"require({package!r})"], target)
    return node, target / "node_modules"


def prepare_stompjs(manifest: str, package: str, **environment: str) -> Launch:
    """@stomp/stompjs for Node, with a package for its connection. Raises Absent."""
    node, modules = node_with(PROGRAMS / manifest, "@stomp/stompjs", package)
    program = str(PROGRAMS / "stompjs" / "client.cjs")
    return Launch([node, program], {"NODE_PATH": str(modules), **environment})


GO_STOMP = "github.com/go-stomp/stomp/v3"
GO_ENVIRONMENT = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def compiled_go(home: Path, program: Path) -> None:
    """Compiles the program in Go of a folder that has a go.mod. Raises Absent without what it needs; a program that
    does not compile is a failure.
    """
    go = tool("go")
    attempt([go, "mod", "download", GO_STOMP], home, GO_ENVIRONMENT)
    attempt([go, "build", GO_STOMP], home, GO_ENVIRONMENT, COMPILE_S_MAX)
    command = [go, "build", "-buildvcs=false", "-o", str(program), "."]
    subprocess.run(command, cwd=home, env={**os.environ, **GO_ENVIRONMENT}, timeout=COMPILE_S_MAX, check=True)


def prepare_go_stomp() -> Launch:
    """go-stomp, through the Go module proxy; the program is compiled. Raises Absent."""
    home = PROGRAMS / "go"
    target = folder_for("go", *(home / name for name in ("main.go", "go.mod", "go.sum")))
    if not target.exists():
        with new_folder(target) as folder:
            compiled_go(home, folder / "client")
    return Launch([str(target / "client")])


def loading(program: str, load: Sequence[str], inside: str, *packages: str) -> list[str]:
    """A program that loads its library: that of this machine, else out of packages of Debian, which are taken apart;
    it is ``inside``. Raises Absent.
    """
    path = tool(program)
    with suppress(Absent):
        attempt([path, *load], PROGRAMS)
        return [path]
    command = [path, "-I", str(taken_apart(*packages) / inside)]
    attempt([*command, *load], PROGRAMS)
    return command


PERL_PACKAGES = ("libnet-stomp-perl", "libclass-accessor-perl", "liblog-any-perl")
perl_with_net_stomp = partial(loading, "perl", ("-MNet::Stomp", "-e", "1"), "usr/share/perl5", *PERL_PACKAGES)

CLIENTS = (
    ForeignClient("stompjs", lambda: prepare_stompjs("stompjs", "@stomp/tcp-wrapper")),
    ForeignClient("stompjs over WebSocket", lambda: prepare_stompjs("web", "ws", OVER="websocket")),
    ForeignClient("go-stomp", prepare_go_stomp),
    ForeignClient(
        "Net::Stomp",
        lambda: Launch([*perl_with_net_stomp(), str(PROGRAMS / "perl" / "client.pl")]),
        frozenset({"keeps_heart_beats"}),
    ),
)
