"""What the options of the source and the sink have in common: STOMP acceptors and what their refusals mean, logins and
TLS, and hints for names that nobody knows.

Logins are read where the query is planned; tasks get the contents of files, not their names. No secret gets into a
plan: Spark hides options named ``password`` and ``token``, and the rest is in objects without a ``repr`` of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from typing import Final

from artemis_py.client.endpoint import PLAIN_SCHEMES, TLS_SCHEMES, Endpoint
from artemis_py.config.problems import nearest
from artemis_py.errors import ArtemisError, PipelineError
from artemis_py.security.client_login import PASSWORD, TOKEN, USER, ClientLogin, completed
from artemis_py.security.client_tls import FILES, ClientTls, tls_of

MEANINGS: Final = {
    "user": f"login at the acceptor (else {USER} of the environment)",
    "password": f"the user's password (else {PASSWORD} of the environment)",
    "passwordFile": "a file with the password in its first line",
    "token": f"a bearer token instead of user and password (else {TOKEN} of the environment)",
    "tokenFile": "a file with the token in its first line",
    "caFile": "a file in PEM with the certificates to trust",
    "certificateFile": "a file in PEM with the client's certificate, and its key",
    "keyFile": "a file in PEM with the client's key",
    "verify": "true or false: whether to check the broker's certificate",
}
SECRETS: Final = ("password", "token")
STORAGE: Final = "storage."
"""How the names of options begin that are for the object store of an archive."""
NAMED: Final = {name: f"option {name}" for name in MEANINGS}

_ENDS_WITH_PORT: Final = re.compile(r":\d+/?$")
# ERRORs after which another connection may do: connectionsAllowed, and a connectionTtl in which Spark had no rows.
_PASSING: Final = ("This acceptor allows", "Nothing received for")
_LATER: Final = "try again later"
"""The end of an ERROR after which another connection may do: too many logins wait, or nobody can check them now."""
_USER_INFO: Final = re.compile(r"(?<=//)[^/?#\s,]*@")


def endpoints_of(urls: str, option: str, meaning: str) -> tuple[Endpoint, ...]:
    """The acceptors that an option names, separated by commas. Raises PipelineError with the option and its meaning."""
    return tuple(_endpoint(one.strip(), option, meaning) for one in urls.split(",") if one.strip())


def _endpoint(text: str, option: str, meaning: str) -> Endpoint:
    url = text if "://" in text else f"tcp://{text}"
    scheme, _, place = url.partition("://")
    if scheme.lower() in ("http", "https"):
        raise PipelineError(f"Option {option} is {text!r}, name a STOMP acceptor: tcp://host:61613")
    if scheme.lower() not in (*PLAIN_SCHEMES, *TLS_SCHEMES):
        raise PipelineError(f"Option {option} is {text!r}: use tcp:// or stomp://, and stomps:// with TLS")
    found = Endpoint.of(url)
    if found is None or not _ENDS_WITH_PORT.search(place):
        raise PipelineError(f"Option {option} is {text!r}; allowed: {meaning}")
    return found


def is_passing(reason: str) -> bool:
    """The broker refuses for this reason: may another connection do?"""
    return reason.startswith(_PASSING) or reason.endswith(_LATER)


def refused_connection(endpoint: Endpoint, login: ClientLogin, reason: str) -> PipelineError:
    """The error for a CONNECT that was refused for good."""
    who = "; options user and passwordFile, or tokenFile, say who connects"
    if not login.is_empty:
        who = f" to {login} of options {'token, tokenFile' if login.token else 'user, password'}"
    return PipelineError(f"{endpoint} refuses the connection{who}: {reason}")


def storage_of(given: Mapping[str, str]) -> dict[str, str]:
    """The options for the object store of an archive, by the names that deltalake knows."""
    return {name[len(STORAGE) :]: text for name, text in given.items() if name.lower().startswith(STORAGE)}


def is_secret(name: str) -> bool:
    """Would the value of an option for an object store let others in?"""
    return any(
        word in name.lower()
        for word in ("secret", "password", "token", "access_key", "account_key", "master_key", "sas")
    )


def login_of(texts: Mapping[str, str]) -> ClientLogin:
    """The login that the options and the driver's environment give. Raises PipelineError."""
    try:
        return completed(texts, os.environ, NAMED)
    except ArtemisError as error:
        raise PipelineError(str(error)) from None


def tls_options(texts: Mapping[str, str], *, is_used: bool) -> ClientTls | None:
    """What the options say about TLS; None where no URL uses it. Raises PipelineError."""
    given = [name for name in (*FILES, "verify") if name in texts]
    if given and not is_used:
        raise PipelineError(f"option {given[0]} is about TLS, but option url names no acceptor with it")
    verify = texts.get("verify", "true").strip().lower()
    if verify not in ("true", "false"):
        raise PipelineError(f"option verify is {texts['verify']!r}; allowed: {MEANINGS['verify']}")
    if not is_used:
        return None
    try:
        return tls_of(texts, verifies=verify == "true", named=NAMED)
    except ArtemisError as error:
        raise PipelineError(str(error)) from None


def shown_url(text: str) -> str:
    """A URL for a message, without what may be a password."""
    return _USER_INFO.sub("…@", text)


def check_no_user(urls: str) -> None:
    """Raises PipelineError for a URL with a user or password: it is shown wherever the source is."""
    if _USER_INFO.search(urls):
        raise PipelineError(
            f"option url is {shown_url(urls)!r}: it must not contain a login; give options user and passwordFile"
        )


def hint(name: str, known: Collection[str]) -> str:
    """The probably intended name, or all known names."""
    meant = nearest(name, known)
    return f"known are {', '.join(known)}" if meant is None else f"did you mean {meant}?"
