"""A real Keycloak, if this machine has one: `keycloak-quarkus-dist` of Maven Central, unpacked."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from tests.kit.forks import ROOT
from tests.kit.http import ask
from tests.kit.ports import free_port
from tests.kit.process import LOOPBACK, eventually, kill_group

START_S: Final = 600.0
"""It compiles itself at its first start."""
_ADMIN: Final = "admin of tests"


_NAMED: Final = os.environ.get("KEYCLOAK_HOME")
_FOLDERS: Final = [Path(_NAMED)] if _NAMED else sorted((ROOT / ".cache").glob("*/keycloak-*"), reverse=True)
_PROGRAM: Final = next((path for folder in _FOLDERS if (path := folder / "bin" / "kc.sh").exists()), None)
"""Of ``KEYCLOAK_HOME``, or of the newest ``keycloak-*`` in a folder of the cache."""
MISSING: Final = (
    ""
    if _PROGRAM is not None and shutil.which("java")
    else "no Keycloak: neither KEYCLOAK_HOME nor keycloak-* in a folder of .cache, or no Java"
)
"""Why there can be no Keycloak; empty if there can."""


@dataclass(frozen=True)
class Keycloak:
    """One that runs, with nothing but its own realm."""

    port: int

    def log_in(self, realm: str, **login: str) -> dict[str, str]:
        """The tokens of a user who tells a program the password."""
        path = f"/realms/{realm}/protocol/openid-connect/token"
        form = urlencode({"grant_type": "password", **login}).encode()
        reply = ask(self.port, "POST", path, form, Content_Type="application/x-www-form-urlencoded")
        assert reply.status == 200, reply.body
        tokens: dict[str, str] = reply.json
        return tokens

    def admin(self, path: str, body: object = None) -> Any:
        """What an administrator asks, or makes with a body."""
        token = self.log_in("master", client_id="admin-cli", username="admin", password=_ADMIN)["access_token"]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        reply = ask(self.port, "GET" if body is None else "POST", f"/admin/realms{path}", body, **headers)
        assert reply.status < 300, reply.body
        return reply.json if reply.body else None


@contextmanager
def keycloak(log: Path) -> Iterator[Keycloak]:
    """It runs, with a database in memory, until the end."""
    assert _PROGRAM is not None
    port, management = free_port(), free_port()
    options = [f"--http-host={LOOPBACK}", f"--http-port={port}", f"--http-management-port={management}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [_PROGRAM, "start-dev", "--db=dev-mem", *options],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env={
                **os.environ, "KC_BOOTSTRAP_ADMIN_USERNAME": "admin", "KC_BOOTSTRAP_ADMIN_PASSWORD": _ADMIN,
                "JAVA_OPTS_APPEND": "-Xmx512m",
            },
        )  # fmt: skip
    try:

        def is_up() -> bool:
            assert process.poll() is None, log.read_text("utf-8", "replace")
            try:
                return ask(port, "GET", "/realms/master").status == 200
            except OSError:
                return False

        eventually("Keycloak", is_up, bool, START_S)
        yield Keycloak(port)
    finally:
        kill_group(process)
