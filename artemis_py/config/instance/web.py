"""A binding of Artemis' web server as an HTTP acceptor of this broker. Its applications do not run."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from artemis_py.config.draft import AcceptorDraft, Draft
from artemis_py.config.instance.bootstrap import Binding

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


def add_web_acceptors(draft: Draft, bindings: list[Binding]) -> None:
    """Add an acceptor for each binding whose port no acceptor of broker.xml has."""
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
        apps = f"; Artemis' applications do not run here: {', '.join(binding.apps)}" if binding.apps else ""
        draft.problems.note(
            "instance",
            binding.origin,
            f"this binding is the HTTP acceptor {acceptor.name!r}, with a console at /ui/, /metrics and /health{apps}",
        )


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
