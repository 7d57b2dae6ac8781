"""What a key or trust store holds, whatever its format."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from artemis_py.errors import ArtemisError

# Both occur in stores that Java reads. The first is checked by clients, if by anybody; the second is of authorities of
# the last century.
warnings.filterwarnings("ignore", message="Attribute's length must be", category=UserWarning)
warnings.filterwarnings("ignore", message="Parsed a serial number which wasn't positive", category=UserWarning)


class StoreError(ArtemisError):
    """A store cannot be used. The text names the file and the next step, and no password."""


@final
@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key and its certificates, the key's own first."""

    alias: str
    key: PrivateKeyTypes = field(repr=False)
    chain: tuple[x509.Certificate, ...]

    def as_pem(self) -> bytes:
        """The chain and the key, not encrypted: only for memory."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return b"".join(one.public_bytes(Encoding.PEM) for one in self.chain) + key


@final
@dataclass(frozen=True, slots=True)
class Store:
    """The key that was asked for, and the certificates that the store trusts. ``files`` are all that were read."""

    format: str
    key: KeyEntry | None
    trusted: tuple[x509.Certificate, ...]
    files: tuple[Path, ...]


def trusted_as_pem(certificates: tuple[x509.Certificate, ...]) -> str:
    """Certificates as one PEM text."""
    return "".join(one.public_bytes(Encoding.PEM).decode("ascii") for one in certificates)


def pick(path: Path, aliases: list[str], wanted: str | None) -> str | None:
    """Return which of the key entries ``aliases`` is meant; None if there is none and none is named. As in Java, the
    case of letters does not matter. Raises StoreError.
    """
    shown = ", ".join(aliases) or "none"
    if wanted is not None:
        for alias in aliases:
            if alias.casefold() == wanted.casefold():
                return alias
        raise StoreError(f"{path} has no key with the alias {wanted!r}, only: {shown}; correct keyStoreAlias")
    if len(aliases) > 1:
        raise StoreError(f"{path} has {len(aliases)} keys ({shown}); name one of them with keyStoreAlias")
    return aliases[0] if aliases else None
