"""A real directory: slapd of OpenLDAP in a process of its own, below a directory of the test."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.certificates import Authority
from tests.kit.ports import free_port
from tests.kit.process import eventually

SLAPD = shutil.which("slapd") or shutil.which("slapd", path="/usr/sbin")
MODULES = Path("/usr/lib/ldap")
SCHEMAS = Path("/etc/ldap/schema")
WAIT_S = 120.0
SUFFIX = "dc=example,dc=org"
ADMIN, ADMIN_PASSWORD = f"cn=admin,{SUFFIX}", "secret of the admin"

MISSING = next(
    (
        f"{what} is not installed (Debian package slapd)"
        for what, is_there in (
            ("slapd", SLAPD is not None),
            (str(MODULES / "back_mdb.so"), any(MODULES.glob("back_mdb*"))),
            (str(SCHEMAS), SCHEMAS.is_dir()),
        )
        if not is_there
    ),
    "",
)
"""Why there can be no directory; empty if there can."""

_CONFIGURATION = """\
include {schemas}/core.schema
include {schemas}/cosine.schema
include {schemas}/inetorgperson.schema
modulepath {modules}
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
TLSCertificateFile {folder}/slapd.pem
TLSCertificateKeyFile {folder}/slapd.pem
database mdb
suffix "{suffix}"
rootdn "{admin}"
rootpw "{password}"
directory {folder}/db
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
"""


@dataclass(frozen=True)
class Directory:
    """A running slapd: ``ldap`` and ``ldaps`` are its URLs, ``certificate`` what to trust."""

    process: subprocess.Popen[bytes]
    ldap: str
    ldaps: str
    certificate: Path


@contextmanager
def directory(folder: Path) -> Iterator[Directory]:
    """A directory with people and groups."""
    authority, ports = Authority(), [free_port(), free_port()]
    authority.issue("127.0.0.1", hosts=()).pem(folder / "slapd.pem")
    (folder / "db").mkdir()
    file, log_file = folder / "slapd.conf", folder / "slapd.log"
    file.write_text(
        _CONFIGURATION.format(
            schemas=SCHEMAS, modules=MODULES, folder=folder, suffix=SUFFIX, admin=ADMIN, password=ADMIN_PASSWORD
        )
    )
    ldap, ldaps = f"ldap://127.0.0.1:{ports[0]}", f"ldaps://127.0.0.1:{ports[1]}"
    command = [str(SLAPD), "-d", "0", "-h", f"{ldap} {ldaps}", "-f", str(file)]
    with log_file.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            with socket.socket() as probe:
                eventually(
                    "slapd listens, or ends",
                    lambda: probe.connect_ex(("127.0.0.1", ports[1])) == 0 or process.poll() is not None,
                    bool,
                    WAIT_S,
                )
            assert process.poll() is None, f"slapd ended: {log_file.read_text()}"
            _fill(ldap)
            yield Directory(process, ldap, ldaps, authority.pem(folder / "authority.pem"))
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _fill(url: str) -> None:
    """Adds what the directory has."""
    import ldap3

    people = [("ann", "people"), ("bob", "people"), ("a, (b)*\\c", "people"), ("twin", "people"), ("twin", "others")]
    groups = {"senders": ["ann", "bob"], "admins": ["ann"]}
    entries: list[tuple[str, list[str], dict[str, Any]]] = [
        (SUFFIX, ["dcObject", "organization"], {"dc": "example", "o": "Example"}),
        *((f"ou={unit},{SUFFIX}", ["organizationalUnit"], {"ou": unit}) for unit in ("people", "groups", "others")),
        *(
            (
                person(user, unit),
                ["inetOrgPerson"],
                {"uid": user, "cn": user, "sn": user, "userPassword": f"secret of {user}"},
            )
            for user, unit in people
        ),
        *(
            (
                f"cn={name},ou=groups,{SUFFIX}",
                ["groupOfNames"],
                {"cn": name, "member": [person(user) for user in members]},
            )
            for name, members in groups.items()
        ),
    ]
    server = ldap3.Server(url, get_info=ldap3.NONE)
    with ldap3.Connection(server, ADMIN, ADMIN_PASSWORD, auto_bind=True, check_names=False) as admin:
        for dn, classes, attributes in entries:
            assert admin.add(dn, classes, attributes), admin.result


def person(user: str, unit: str = "people") -> str:
    """The DN of somebody whose name has no special characters, or the escaped one."""
    escaped = "".join(f"\\{each}" if each in ',\\+"<>;=' else each for each in user)
    return f"uid={escaped},ou={unit},{SUFFIX}"
