"""Opens a store: its content says what it is. Java reads PKCS12 as "JKS" and JKS as "PKCS12", too, so the configured
type says nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from artemis_py.config.overlay.properties_file import parse_properties
from artemis_py.security.stores.jks import MAGICS, read_jks
from artemis_py.security.stores.pem import read_pem
from artemis_py.security.stores.pkcs12 import read_pkcs12
from artemis_py.security.stores.store import Store, StoreError, WantedKey

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
        f"{path} is no key or trust store: it is not PEM, PEMCFG (lines source.NAME=file), PKCS12, JKS or JCEKS; look "
        f"at it with: keytool -list -keystore {path}"
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
