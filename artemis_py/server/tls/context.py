"""From the parameters of an acceptor to an ``ssl.SSLContext``.

Everything here reads files, so it runs at the start, in ``check``, and later only in threads.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final
from urllib.parse import unquote

from artemis_py.config.properties_file import parse_properties
from artemis_py.config.settings import AcceptorConfig, BridgeConfig, BrokerConfig
from artemis_py.config.tables.acceptor import OPENSSL_NAMES, TLS13_SUITES, TLS_VERSIONS
from artemis_py.config.tables.bridges import ConnectorConfig
from artemis_py.errors import ConfigError, Problem
from artemis_py.security.certificate import TIMES, der_of, pem_of, seconds_of, subject_of
from artemis_py.security.der import read_item, sequence
from artemis_py.security.jks import MAGICS, read_jks
from artemis_py.security.key_store import (
    MemoryFile,
    Store,
    StoreError,
    WantedKey,
    how_to_look,
    read_pem,
    refusal_of,
    refused_certificate,
)
from artemis_py.security.masked import MaskedError, acceptor_password, bridge_password, parameter_password
from artemis_py.security.pkcs12 import read_pkcs12

_VERSIONS: Final = dict(zip(TLS_VERSIONS, (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3), strict=True))


class TlsError(StoreError):
    """An acceptor cannot speak TLS. The text names the acceptor with its file and line, what is wrong, and the next
    step.
    """

    def __init__(self, acceptor: AcceptorConfig, reason: str) -> None:
        what, origin = f"acceptor {acceptor.name} cannot speak TLS: {reason}", acceptor.origin
        super().__init__(f"{origin}: {what}")
        self.reason = reason
        self.problem = Problem("error", origin.file, origin.line, what)


@final
@dataclass(frozen=True, slots=True)
class Loaded:
    """What the files of an acceptor hold now. ``expires_s`` and ``begins_s`` are dates in seconds since 1970, of the
    first certificate in the acceptor's own chain to expire and of the last one to become valid.
    """

    context: ssl.SSLContext
    begins_s: float
    expires_s: float
    owner: str
    """The subject of the acceptor's certificate."""

    @property
    def shown(self) -> str:
        """The certificate, for people."""
        return f"{self.owner}, valid until {self.shown_expiry}"

    @property
    def shown_expiry(self) -> str:
        """When the certificate expires, for people, in UTC."""
        return shown_date(self.expires_s)

    def complaint(self, now_s: float) -> str | None:
        """Why clients will refuse the certificate now; None if they will not."""
        if self.expires_s <= now_s:
            return f"its certificate ({self.owner}) expired at {self.shown_expiry}; renew it"
        if self.begins_s > now_s:
            return f"its certificate ({self.owner}) is only valid from {shown_date(self.begins_s)}; check the clock"
        return None


def shown_date(date_s: float) -> str:
    """A date for people, in UTC."""
    return datetime.fromtimestamp(date_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


@final
class TlsFiles:
    """The files of one acceptor, and how to make a context of them."""

    def __init__(self, config: BrokerConfig, acceptor: AcceptorConfig) -> None:
        self.acceptor = acceptor
        self._config = config
        self.paths: tuple[Path, ...] = ()
        """All files of the last attempt to load them, also if it failed."""

    def load(self) -> Loaded:
        """Read the files. Raises TlsError."""
        acceptor, before = self.acceptor, self.paths
        try:
            return self._load()
        except (StoreError, OSError, ssl.SSLError, ValueError) as error:
            self.paths = tuple(dict.fromkeys((*self.paths, *before)))  # any of them may mend it
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise TlsError(acceptor, reason) from None

    def _load(self) -> Loaded:
        acceptor = self.acceptor
        key_path = self._path("keyStorePath")
        assert key_path is not None  # else the configuration refuses the acceptor
        trust_path, crl_path = self._path("trustStorePath"), self._path("crlPath")
        self.paths = tuple(path for path in (key_path, trust_path, crl_path) if path is not None)
        key = WantedKey(acceptor.text_param("keyStoreAlias"), self._password("keyPassword"))
        own = read_store(key_path, self._password("keyStorePassword"), key)
        self.paths = tuple(dict.fromkeys((*own.files, *self.paths)))
        if own.key is None:
            raise StoreError(f"{key_path} has certificates but no private key, so it can only be a trust store")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        _set_versions(context, acceptor)
        _load_key(context, own)
        if trust_path is not None:
            trust = read_store(trust_path, self._password("trustStorePassword"))
            self.paths = tuple(dict.fromkeys((*self.paths, *trust.files)))
            _trust(context, trust_path, trust, "no client could have one")
        if crl_path is not None:
            _load_revoked(context, crl_path)
        if acceptor.bool_param("needClientAuth"):
            context.verify_mode = ssl.CERT_REQUIRED
        elif acceptor.bool_param("wantClientAuth"):
            context.verify_mode = ssl.CERT_OPTIONAL
        wanted = acceptor.text_param("sniHost")
        if wanted is not None:
            context.sni_callback = _name_check(re.compile(wanted).fullmatch)
        chain = own.key.chain
        begins_s = max(one.begins_s for one in chain)
        expires_s = min(one.expires_s for one in chain)
        return Loaded(context, begins_s, expires_s, subject_of(chain[0].der).text)

    def _path(self, name: str) -> Path | None:
        return _path_of(self._config, self.acceptor.text_param(name))

    def _password(self, name: str) -> str | None:
        try:
            return acceptor_password(self._config, self.acceptor, name)
        except ConfigError as error:
            raise StoreError(str(error.problems[0].message)) from None


def _path_of(config: BrokerConfig, text: str | None) -> Path | None:
    """The file that a parameter names: a URL, a path from the working directory, or one beside broker.xml."""
    if text is None:
        return None
    if text.startswith("file:"):
        return Path("/" + unquote(text.removeprefix("file:")).lstrip("/"))
    here = Path(text)
    return here if os.path.exists(here) else Path(config.file).parent / text


def _set_versions(context: ssl.SSLContext, acceptor: AcceptorConfig) -> None:
    """Set versions and suites. Suites of one version alone switch the other version off, as in Java."""
    words = [word.strip() for word in acceptor.list_param("enabledProtocols")]
    versions = [_VERSIONS[word] for word in TLS_VERSIONS if word in words]
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    suites = [word.strip() for word in acceptor.list_param("enabledCipherSuites")]
    if not suites:
        return
    old = [OPENSSL_NAMES[word] for word in suites if word in OPENSSL_NAMES]
    has_new = any(word in TLS13_SUITES for word in suites)
    if old:
        context.set_ciphers(":".join(old))
    if not has_new:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if not old:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise StoreError("no suite in enabledCipherSuites belongs to a version in enabledProtocols; add one")


def _load_key(context: ssl.SSLContext, store: Store) -> None:
    assert store.key is not None
    if not store.key.chain:
        raise StoreError(f"{store.files[0]} has the key without a certificate; add the certificate to it")
    try:
        store.key.load_into(context)
    except ssl.SSLError as error:
        look = how_to_look(store.format, store.files)
        reason = refused_certificate(store.key.chain, look) or refusal_of(error, look)
        raise StoreError(f"{store.files[0]}: {reason}") from None


def _trust(context: ssl.SSLContext, path: Path, store: Store, without: str) -> None:
    if not store.trusted:
        raise StoreError(f"{path} has no certificate of an issuer, so {without}; add it to the file")
    for each in store.trusted:
        try:
            context.load_verify_locations(cadata=each.der)
        except ssl.SSLError as error:
            raise StoreError(
                f"{path}: OpenSSL does not accept the certificate of {subject_of(each.der).text}: {_reason_of(error)}"
            ) from None


def _load_revoked(context: ssl.SSLContext, path: Path) -> None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} (crlPath) cannot be read: {error.strerror or error}") from None
    try:
        data = der_of(data[data.index(b"-----BEGIN") :]) if b"-----BEGIN" in data else data
        until = _next_update(data)
        with MemoryFile(pem_of("X509 CRL", data)) as name:
            context.load_verify_locations(cafile=name)
    except (ValueError, ssl.SSLError) as error:
        raise StoreError(f"{path} (crlPath) is not a list of revoked certificates: {error}") from None
    if until is not None and until < datetime.now(UTC).timestamp():
        raise StoreError(
            f"{path} (crlPath) is out of date since {shown_date(until)}, so every client with a certificate would be "
            "refused; get a new one from the issuer"
        )
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _next_update(data: bytes) -> float | None:
    """When a list in DER goes out of date, in seconds since 1970; None if it does not say. Raises ValueError."""
    fields = sequence(sequence(read_item(data), 3)[0], 3)
    times = [each for each in fields if each.tag in TIMES]
    return seconds_of(times[1]) if len(times) > 1 else None


def _name_check(matches: Callable[[str], object]) -> Callable[[ssl.SSLObject, str | None, ssl.SSLContext], int | None]:
    def check(_connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int | None:
        """A client that asks for no name is accepted, as in Artemis."""
        return None if name is None or matches(name) else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    return check


def _reason_of(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


# ---- the side of a client ------------------------------------------------------------------------


def connector_context(config: BrokerConfig, connector: ConnectorConfig) -> ssl.SSLContext:
    """The context in which a bridge connects to another broker. Reads the connector's files. Raises StoreError."""
    try:
        return _connector_context(config, connector)
    except MaskedError as error:
        raise StoreError(f"connector {connector.name}: {error}") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"connector {connector.name} cannot speak TLS: {error}") from None


def _connector_context(config: BrokerConfig, connector: ConnectorConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    trust_path = _path_of(config, connector.text("trustStorePath"))
    if connector.flag("trustAll"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.check_hostname = connector.flag("verifyHost")
        if trust_path is None:
            context.load_default_certs()
        else:
            password = parameter_password(config, connector.params, "trustStorePassword")
            _trust(context, trust_path, read_store(trust_path, password), "no broker could have one")
    key_path = _path_of(config, connector.text("keyStorePath"))
    if key_path is not None:
        wanted = WantedKey(connector.text("keyStoreAlias"), parameter_password(config, connector.params, "keyPassword"))
        own = read_store(key_path, parameter_password(config, connector.params, "keyStorePassword"), wanted)
        if own.key is None:
            raise StoreError(f"{key_path} has certificates but no private key, so it can only be a trust store")
        _load_key(context, own)
    return context


def check_files(config: BrokerConfig) -> list[tuple[AcceptorConfig, str, bool]]:
    """Open the files of all TLS acceptors that are opened, as a start would. Return for each problem the acceptor, the
    text, and whether the broker would not start.
    """
    found: list[tuple[AcceptorConfig, str, bool]] = []
    now_s = datetime.now(UTC).timestamp()
    for acceptor in config.acceptors:
        if not (acceptor.is_opened and acceptor.is_tls):
            continue
        name = f"acceptor {acceptor.name}"
        try:
            complaint = TlsFiles(config, acceptor).load().complaint(now_s)
        except TlsError as error:
            found.append((acceptor, f"{name} cannot speak TLS: {error.reason}", True))
        else:
            if complaint is not None:
                found.append((acceptor, f"{name}: {complaint}", False))
    return found


def check_bridges(config: BrokerConfig) -> list[tuple[BridgeConfig, str]]:
    """Unmask the passwords and open the files of all bridges, as each attempt to connect would. Return for each problem
    the bridge and the text: it would not connect.
    """
    found: list[tuple[BridgeConfig, str]] = []
    for bridge in config.bridges:
        try:
            bridge_password(config, bridge)
        except MaskedError as error:
            found.append((bridge, f"bridge {bridge.name} cannot connect: password: {error}"))
        for connector in bridge.connectors:
            try:
                if connector.is_tls:
                    connector_context(config, connector)
            except StoreError as error:
                found.append((bridge, f"bridge {bridge.name} cannot connect: {error}"))
    return found


# ---- key and trust stores ------------------------------------------------------------------------
#
# Java reads PKCS12 as "JKS" and JKS as "PKCS12", too, so the configured type says nothing: the content of a store says
# what it is.

_SIZE_MAX: Final = 16 << 20
_CLASS_PATH: Final = "classpath:"
_SOURCE: Final = "source."


def read_store(path: Path, password: str | None, wanted: WantedKey | None = None) -> Store:
    """Read a store of any format, with the ``wanted`` key; None: only its certificates. Raises StoreError."""
    data = _content(path)
    if wanted is not None and wanted.password is None:
        wanted = WantedKey(wanted.alias, password)
    if data[:4] in MAGICS:
        return read_jks(path, data, password, wanted)
    if data[:1] == b"\x30":
        return read_pkcs12(path, data, password, wanted)
    if b"-----BEGIN " in data:
        return read_pem([(path, data)], wanted)
    sources = _sources(path, data)
    if sources:
        store = read_pem([(source, _content(source)) for source in sources], wanted)
        return Store("PEMCFG", store.key, store.trusted, (path, *sources))
    raise StoreError(
        f"{path} is not a key or trust store: it is not PEM, PEMCFG (lines source.NAME=file), PKCS12, JKS or JCEKS; "
        f"look at it with: keytool -list -keystore {path}"
    )


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_SIZE_MAX + 1)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > _SIZE_MAX:
        raise StoreError(f"{path} is larger than 16 MiB; no store is")
    return data


def _sources(path: Path, data: bytes) -> list[Path]:
    """The files that a PEMCFG names; relative ones, and those of Java's class path, are beside it."""
    found = parse_properties(data.decode("latin-1")) if b"source" in data else {}
    texts = [text for name, text in found.items() if name.startswith(_SOURCE)]
    return [path.parent / text.removeprefix(_CLASS_PATH).removeprefix("file:") for text in texts]
