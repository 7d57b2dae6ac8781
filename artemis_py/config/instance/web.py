"""A binding of Artemis' web server as an HTTP acceptor of this broker: metrics, health, and the console it names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from artemis_py.config.draft import AcceptorDraft, Draft
from artemis_py.config.instance.bootstrap import Binding

CONSOLE: Final = "console"
"""The path under which Artemis' console is, and the name of its application."""
_PORTS: Final = {"http": 80, "https": 443}
_NAMES: Final = {
    "keyStorePath": "keyStorePath",
    "keyStorePassword": "keyStorePassword",
    "keyStoreType": "keyStoreType",
    "trustStorePath": "trustStorePath",
    "trustStorePassword": "trustStorePassword",
    "trustStoreType": "trustStoreType",
    "clientAuth": "needClientAuth",
    "includedTLSProtocols": "enabledProtocols",
    "includedCipherSuites": "enabledCipherSuites",
    "sslAutoReload": "sslAutoReload",
    "passwordCodec": "activemq.passwordcodec",
}
"""Attributes of a binding, and the acceptor parameters that mean the same."""


def add_web_acceptors(draft: Draft, bindings: list[Binding], folders: Sequence[str] = ()) -> None:
    """Add an acceptor for each binding whose port no acceptor of broker.xml has. ``folders`` may have the console."""
    for binding in bindings:
        acceptor = _acceptor(draft, binding, f"web-{number}" if (number := _count(draft)) else "web")
        if acceptor is None:
            continue
        taken = next((each for each in draft.acceptors if each.port == acceptor.port and each.port), None)
        if taken is not None:
            draft.problems.note(
                "instance", binding.origin, f"this binding is left to acceptor {taken.name!r}, which has the port"
            )
            continue
        draft.acceptors.append(acceptor)
        war = _console(binding, folders)
        draft.console_war = draft.console_war or war
        missing = [name for name in binding.apps if war is None or name != CONSOLE]
        apps = f", and the console of {war}" if war is not None else ""
        apps += f", but not {', '.join(missing)}" if missing else ""
        draft.problems.note(
            "instance",
            binding.origin,
            f"this binding is the HTTP acceptor {acceptor.name!r}: it has /metrics and /health{apps}",
        )


def _console(binding: Binding, folders: Sequence[str]) -> str | None:
    """Where the console is that a binding names, a zip or a folder; None if it names none, or it is not there."""
    name = binding.wars.get(CONSOLE)
    if name is None:
        return None
    return next((path for folder in folders if os.path.exists(path := os.path.join(folder, name))), None)


def _count(draft: Draft) -> int:
    return sum(each.name == "web" or each.name.startswith("web-") for each in draft.acceptors)


def _acceptor(draft: Draft, binding: Binding, name: str) -> AcceptorDraft | None:
    try:
        parts = urlsplit(binding.uri.strip())
        port, host = parts.port, parts.hostname
    except ValueError:
        port = host = None
        parts = urlsplit("")
    if parts.scheme not in _PORTS or not host:
        draft.problems.error(binding.origin, "wrong uri of a binding", value=binding.uri, allowed="http://host:port")
        return None
    params = {"protocols": "HTTP"}
    if parts.scheme == "https":
        params["sslEnabled"] = "true"
        params |= {_NAMES[key]: value for key, value in binding.attributes.items() if key in _NAMES}
    port = _PORTS[parts.scheme] if port is None else port
    return AcceptorDraft(name, binding.origin, "tcp", host, port, params, dict.fromkeys(params, binding.origin))
