"""A real directory: slapd of OpenLDAP in a process of its own, below a directory of the test."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.kit.ports import free_ports
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
TLSCertificateFile {folder}/cert.pem
TLSCertificateKeyFile {folder}/key.pem
database mdb
suffix "{suffix}"
rootdn "{admin}"
rootpw "{password}"
directory {folder}/db
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
"""


class Directory:
    """A running slapd: ``ldap`` and ``ldaps`` are its URLs, ``certificate`` what to trust."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "cert.pem"
        _write_certificate(folder)
        (folder / "db").mkdir()
        ports = free_ports(2)
        self.ldap = f"ldap://127.0.0.1:{ports[0]}"
        self.ldaps = f"ldaps://127.0.0.1:{ports[1]}"
        file = folder / "slapd.conf"
        file.write_text(
            _CONFIGURATION.format(
                schemas=SCHEMAS, modules=MODULES, folder=folder, suffix=SUFFIX, admin=ADMIN, password=ADMIN_PASSWORD
            )
        )
        self._log = folder / "slapd.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(SLAPD), "-d", "0", "-h", f"{self.ldap} {self.ldaps}", "-f", str(file)], stdout=log, stderr=log
            )
        self.port = ports[0]
        self._await_port(ports[1])

    def _await_port(self, port: int) -> None:
        def listens() -> bool:
            assert self._process.poll() is None, f"slapd ended: {self._log.read_text()}"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                return False
            return True

        eventually("slapd listens", listens, bool, WAIT_S)

    def add(self, dn: str, classes: list[str], **attributes: Any) -> None:
        """Add an entry."""
        import ldap3

        server = ldap3.Server(self.ldap, get_info=ldap3.NONE)
        with ldap3.Connection(server, ADMIN, ADMIN_PASSWORD, auto_bind=True, check_names=False) as admin:
            assert admin.add(dn, classes, attributes), admin.result

    def pause(self) -> None:
        """Let it answer nothing; connections are still taken by the system."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it."""
        self.go_on()
        self._process.terminate()
        try:
            self._process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def directory(folder: Path) -> Iterator[Directory]:
    """A directory with people and groups."""
    found = Directory(folder)
    try:
        found.add(SUFFIX, ["dcObject", "organization"], dc="example", o="Example")
        for name in ("people", "groups", "others"):
            found.add(f"ou={name},{SUFFIX}", ["organizationalUnit"], ou=name)
        for user in ("ann", "bob", "a, (b)*\\c"):
            _add_person(found, user, "people")
        _add_person(found, "twin", "people")
        _add_person(found, "twin", "others")
        found.add(_group("senders"), ["groupOfNames"], cn="senders", member=[person("ann"), person("bob")])
        found.add(_group("admins"), ["groupOfNames"], cn="admins", member=[person("ann")])
        yield found
    finally:
        found.stop()


def person(user: str, unit: str = "people") -> str:
    """The DN of somebody whose name has no special characters, or the escaped one."""
    escaped = "".join(f"\\{each}" if each in ',\\+"<>;=' else each for each in user)
    return f"uid={escaped},ou={unit},{SUFFIX}"


def _add_person(found: Directory, user: str, unit: str) -> None:
    found.add(person(user, unit), ["inetOrgPerson"], uid=user, cn=user, sn=user, userPassword=f"secret of {user}")


def _group(name: str) -> str:
    return f"cn={name},ou=groups,{SUFFIX}"


def _write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
