"""A real Keycloak, if this machine has one: `keycloak-quarkus-dist` of Maven Central, unpacked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from tests.kit.forks import ROOT
from tests.kit.ports import free_ports
from tests.kit.process import LOOPBACK, eventually, kill_group

START_S: Final = 600.0
"""It compiles itself at its first start."""
_ADMIN: Final = "admin of tests"


def home() -> Path | None:
    """``KEYCLOAK_HOME``, or the newest ``keycloak-*`` in a folder of the cache; None without it, or Java."""
    named = os.environ.get("KEYCLOAK_HOME")
    found = [Path(named)] if named else sorted((ROOT / ".cache").glob("*/keycloak-*"))
    homes = [path for path in found if (path / "bin" / "kc.sh").exists()]
    return homes[-1] if homes and shutil.which("java") else None


def why_no_keycloak() -> str | None:
    """What this machine lacks for it, or None."""
    lacking = "no Keycloak: neither KEYCLOAK_HOME nor keycloak-* in a folder of .cache, or no Java"
    return lacking if home() is None else None


class Keycloak:
    """One that runs, with nothing but its own realm."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(
        self, path: str, body: Any = None, *, form: bool = False, token: str = "", method: str | None = None
    ) -> Any:
        """What it answers, as JSON; None without a body."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = None
        if body is not None:
            data = (urlencode(body) if form else json.dumps(body)).encode()
            headers["Content-Type"] = "application/x-www-form-urlencoded" if form else "application/json"
        request = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def admin(self, path: str, body: Any = None) -> Any:
        """What an administrator asks."""
        login = {"grant_type": "password", "client_id": "admin-cli", "username": "admin", "password": _ADMIN}
        token = self.ask("/realms/master/protocol/openid-connect/token", login, form=True)["access_token"]
        return self.ask(f"/admin/realms{path}", body, token=token)

    @property
    def is_up(self) -> bool:
        """Does it answer?"""
        try:
            return bool(self.ask("/realms/master"))
        except (OSError, urllib.error.HTTPError):
            return False


@contextmanager
def keycloak(log: Path) -> Iterator[Keycloak]:
    """It runs, with a database in memory, until the end."""
    place = home()
    assert place is not None
    port, management = free_ports(2)
    options = [f"--http-host={LOOPBACK}", f"--http-port={port}", f"--http-management-port={management}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [place / "bin" / "kc.sh", "start-dev", "--db=dev-mem", *options],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env={
                **os.environ, "KC_BOOTSTRAP_ADMIN_USERNAME": "admin", "KC_BOOTSTRAP_ADMIN_PASSWORD": _ADMIN,
                "JAVA_OPTS_APPEND": "-Xmx512m",
            },
        )  # fmt: skip
    try:
        one = Keycloak(f"http://{LOOPBACK}:{port}")

        def is_up() -> bool:
            assert process.poll() is None, log.read_text("utf-8", "replace")
            return one.is_up

        eventually("Keycloak", is_up, bool, START_S)
        yield one
    finally:
        kill_group(process)
