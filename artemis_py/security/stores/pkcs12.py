"""PKCS12: one key with its chain, and certificates."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from artemis_py.security.stores.chains import in_order
from artemis_py.security.stores.store import KeyEntry, Store, StoreError, pick


def read_pkcs12(path: Path, data: bytes, password: str | None, alias: str | None) -> Store:
    """Read a store. Of several keys only the first one can be read. Raises StoreError."""
    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        if "password" in str(error).lower() or "mac" in str(error).lower():
            raise StoreError(
                f"{path}: the password is wrong, or the file is damaged; try it with: keytool -list -keystore {path}"
            ) from None
        raise StoreError(f"{path} is not a PKCS12 store that can be read: {error}") from None
    others = tuple(each.certificate for each in found.additional_certs)
    if found.key is None or found.cert is None:
        pick(path, [], alias)
        return Store("PKCS12", None, others, (path,))
    own = _alias(found.cert)
    if alias is not None and alias.casefold() != own.casefold():
        others_named = [_alias(each) for each in found.additional_certs if each.friendly_name]
        if alias.casefold() in map(str.casefold, others_named):
            raise StoreError(
                f"{path} has several keys, and only the first one of a PKCS12 store can be read; give this one a store "
                f"of its own: keytool -importkeystore -srckeystore {path} -srcalias {alias} -destkeystore {alias}.p12 "
                "-deststoretype PKCS12"
            )
        pick(path, [own, *others_named], alias)
    chain: tuple[x509.Certificate, ...] = in_order(found.cert.certificate, others)
    return Store("PKCS12", KeyEntry(own, found.key, chain), others, (path,))


def _alias(found: pkcs12.PKCS12Certificate) -> str:
    return (found.friendly_name or b"").decode("utf-8", "replace")
