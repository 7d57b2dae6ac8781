"""Acceptors: the ports the broker listens on, their parameters, and why a port is not opened."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from artemis_py.config.tables.acceptor_params import PARAMS, SERVED_PROTOCOLS
from artemis_py.config.tables.entities import NOWHERE, Origin
from artemis_py.config.tables.fields import Setting

_LOOPBACK_NAMES: Final = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


@functools.cache
def known_params() -> Mapping[str, Setting]:
    """Every acceptor parameter by name, old names included."""
    rows = {row.name: row for row in PARAMS}
    for row in PARAMS:
        rows.update(dict.fromkeys(row.aliases, row))
    return rows


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach ``host``: localhost, 127.0.0.0/8, ::1."""
    if host.lower() in _LOOPBACK_NAMES:
        return True
    import ipaddress

    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptorConfig:
    """One listening port. ``params`` holds the checked texts of the URI by their current names.

    ``protocols`` are the protocols served on this port. ``refused`` is the reason why the server must not open the
    port, or None.
    """

    name: str
    host: str
    port: int
    protocols: tuple[str, ...] = SERVED_PROTOCOLS[:1]
    params: dict[str, str] = field(default_factory=dict)
    origin: Origin = NOWHERE
    refused: str | None = None

    @property
    def is_opened(self) -> bool:
        """Does the broker open this port when it starts?"""
        return self.refused is None and bool(self.protocols) and self.bool_param("autoStart")

    @property
    def place(self) -> str:
        """Where it listens, as ``host:port``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_tls(self) -> bool:
        """Does the port speak TLS?"""
        return self.bool_param("sslEnabled")

    def text_param(self, name: str) -> str | None:
        """Return a parameter as it is written; None if the URI lacks it, or it is empty."""
        return self.params.get(name) or None

    def int_param(self, name: str, default: int | None = None) -> int:
        """Return a parameter as a whole number. If the URI lacks it: ``default``, else the table's default.

        Raises KeyError for a parameter that the table lacks, and TypeError when there is no default.
        """
        text = self.params.get(name)
        return int(text if text is not None else self._default(name, default))

    def float_param(self, name: str, default: float | None = None) -> float:
        """Like :meth:`int_param` for a number with a fraction."""
        text = self.params.get(name)
        return float(text if text is not None else self._default(name, default))

    def bool_param(self, name: str, default: bool | None = None) -> bool:
        """Like :meth:`int_param` for a boolean; as in Artemis, any text except ``true`` is false."""
        text = self.params.get(name)
        return text.lower() == "true" if text is not None else bool(self._default(name, default))

    def list_param(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Like :meth:`int_param` for a comma-separated list; empty parts are skipped."""
        text = self.params.get(name)
        if text is not None:
            return tuple(part for part in text.split(",") if part)
        return tuple(self._default(name, default))

    def _default(self, name: str, default: Any) -> Any:
        return known_params()[name].default if default is None else default
