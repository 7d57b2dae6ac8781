"""Masked passwords: ``ENC(…)`` in broker.xml, bootstrap.xml and login.config, as ``artemis mask`` writes them.

Artemis' own codec is Blowfish with a key that mostly is in its source code: it hides a password from a glance, not from
a reader of the file. So this module reads it and never writes it. (``ENC(…)`` in the users' file is a hash, which is
something else: :mod:`artemis_py.security.users`.)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, final

from artemis_py.config.problems import Problems
from artemis_py.config.settings import AcceptorConfig, BridgeConfig, BrokerConfig
from artemis_py.config.tables.declarations import Origin
from artemis_py.errors import ArtemisError, ConfigError

CODEC_CLASS: Final = "org.apache.activemq.artemis.utils.DefaultSensitiveStringCodec"
KEY_PROPERTY: Final = "artemis.default.sensitive.string.codec.key"
KEY_VARIABLE: Final = "ARTEMIS_DEFAULT_SENSITIVE_STRING_CODEC_KEY"

_KEY_DEFAULT: Final = "clusterpassword"
_BLOCK: Final = 8
_TEXT_LENGTH_MAX: Final = 4096
_KEY_LENGTHS: Final = range(4, 57)
"""Blowfish's, in bytes. Java takes shorter keys, too; ``cryptography`` does not."""
_PARAM_CODEC: Final = "activemq.passwordcodec"
_PARAM_MASKED: Final = "activemq.usemaskedpassword"


class MaskedError(ArtemisError):
    """A masked password cannot be read; the text has neither the password nor the key."""


@final
class Codec:
    """Reads what Artemis' ``DefaultSensitiveStringCodec`` wrote with a key."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        self._key: Final = key.encode()

    def decode(self, text: str) -> str:
        """Return the password in a masked text: hexadecimal digits, perhaps with a sign. Raises MaskedError."""
        from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.modes import ECB
        from cryptography.hazmat.primitives.padding import PKCS7

        data = _bytes_of(text.strip())
        if len(self._key) not in _KEY_LENGTHS:
            raise MaskedError(f"the key must have from {_KEY_LENGTHS.start} to {_KEY_LENGTHS.stop - 1} bytes")
        decryptor = Cipher(Blowfish(self._key), ECB()).decryptor()
        unpadder = PKCS7(_BLOCK * 8).unpadder()
        try:
            plain = unpadder.update(decryptor.update(data) + decryptor.finalize()) + unpadder.finalize()
            return plain.decode()
        except ValueError:
            raise MaskedError(
                "the masked password does not belong to this key; the key is in password-codec, in the environment "
                f"variable {KEY_VARIABLE}, or Artemis' default"
            ) from None


def _bytes_of(text: str) -> bytes:
    """Return the bytes of a number as Java's BigInteger writes it: signed, without leading zeros."""
    digits = text.removeprefix("-")
    if not digits or len(digits) > _TEXT_LENGTH_MAX or not set(digits) <= set("0123456789abcdefABCDEF"):
        raise MaskedError("a masked password is a hexadecimal number, as `artemis mask` prints it")
    number = int(text, 16)
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return bytes(-size % _BLOCK) + number.to_bytes(size, "big", signed=True)


def codec_of(
    definition: str | None, properties: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Codec:
    """Return the codec that a ``password-codec`` names, ``class;key=…``; None: Artemis' default.

    ``properties`` are Java system properties, ``environ`` defaults to the process' environment. Raises MaskedError for
    any other class.
    """
    environ = os.environ if environ is None else environ
    name, *pairs = (definition or CODEC_CLASS).strip().split(";")
    if name.strip() != CODEC_CLASS:
        raise MaskedError(
            f"the password codec {name.strip()} is a Java class and cannot run here; write passwords as ${{NAME}} and "
            f"set them in the environment, or mask them with {CODEC_CLASS}"
        )
    given = dict(pair.strip().partition("=")[::2] for pair in pairs)
    if given.get("algorithm", "two-way") != "two-way":
        raise MaskedError("the password codec hashes (algorithm=one-way), and a hash cannot be read back")
    key = given.get("key") or (properties or {}).get(KEY_PROPERTY) or environ.get(KEY_VARIABLE) or _KEY_DEFAULT
    return Codec(key)


def is_masked(text: str) -> bool:
    """Is this ``ENC(…)``?"""
    return text.startswith("ENC(") and text.endswith(")")


def reveal(text: str, codec: Codec, *, masked: bool | None = None) -> str:
    """Return the password behind a text. ``masked`` is ``mask-password``: None decodes ``ENC(…)`` alone, True takes
    every text as masked, False none. Raises MaskedError.
    """
    if masked is None:
        if text.startswith("ENC(") and not is_masked(text):
            raise MaskedError("a masked password begins here that is not whole: its ) is missing")
        return codec.decode(text[4:-1]) if is_masked(text) else text
    return codec.decode(text) if masked else text


def acceptor_password(config: BrokerConfig, acceptor: AcceptorConfig, name: str) -> str | None:
    """Return the password in an acceptor's parameter ``name``; see ``parameter_password``. Raises ConfigError at the
    acceptor.
    """
    try:
        return parameter_password(config, acceptor.params, name)
    except MaskedError as error:
        raise refused(acceptor.origin, f"acceptor {acceptor.name!r}: {error}") from None


def parameter_password(config: BrokerConfig, params: Mapping[str, str], name: str) -> str | None:
    """Return the password in the parameter ``name`` of a URI, unmasked as ``mask-password`` and ``password-codec``
    say, of the URI or else of the file; None without one. Raises MaskedError with the name.
    """
    text = params.get(name)
    if text is None:
        return None
    flag = params.get(_PARAM_MASKED)
    masked = config.mask_password if flag is None else flag.lower() == "true"
    try:
        codec = codec_of(params.get(_PARAM_CODEC, config.password_codec), config.properties)
        return reveal(text, codec, masked=masked)
    except MaskedError as error:
        raise MaskedError(f"{name}: {error}") from None


def bridge_password(config: BrokerConfig, bridge: BridgeConfig) -> str | None:
    """Return the password of a bridge, unmasked in the same way; None without one. Raises MaskedError."""
    if bridge.password is None:
        return None
    return reveal(bridge.password, codec_of(config.password_codec, config.properties), masked=config.mask_password)


def refused(origin: Origin, message: str) -> ConfigError:
    """Return an error with one problem."""
    problems = Problems()
    problems.error(origin, message)
    return ConfigError(problems.found)
