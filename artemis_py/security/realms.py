"""Everybody who can log in, as one authenticator: users' files, the domains of a login.config, and other authenticators
that broker.xml names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, final

from artemis_py.config.problems import Problems, nearest
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.logins import AuthenticatorConfig, JaasConfig
from artemis_py.errors import ArtemisError, AuthenticatorError, ConfigError, Problem
from artemis_py.security.authenticator import ENTRY_POINTS, Authenticator
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.jaas.login_config import LoginConfig, read_login_config
from artemis_py.security.jaas.modules import make_module
from artemis_py.security.jaas.stack import ModuleStack, Stacked
from artemis_py.security.masked import MaskedError, codec_of, reveal
from artemis_py.security.users.authenticator import PropertiesUsers

BUILT_IN: Final = {
    "jwt": "artemis_py.security.tokens:JwtAuthenticator",
    "ldap": "artemis_py.security.directory:LdapAuthenticator",
}
"""Authenticators that need no entry point: ``module:class``."""


def open_realms(config: BrokerConfig) -> Authenticator:
    """Open every source of users that the configuration names. Blocks: it reads files. Raises ConfigError with every
    problem, each at its file and line.
    """
    authenticator, problems = examine_realms(config)
    if problems.has_errors:
        raise ConfigError(problems.in_order(config.file))
    return authenticator


def problems_of_realms(config: BrokerConfig) -> Sequence[Problem]:
    """Return what is wrong or doubtful about the sources of users; nothing while security is off."""
    if not config.security_enabled:
        return ()
    return examine_realms(config)[1].in_order(config.file)


def examine_realms(config: BrokerConfig) -> tuple[Authenticator, Problems]:
    """Open what can be opened, and say what is wrong with the rest."""
    problems = Problems()
    sources: list[Authenticator] = []
    if config.logins.jaas is not None:
        sources.append(_open_domains(config, config.logins.jaas, problems))
    if config.logins.users is not None:
        sources.append(PropertiesUsers(Path(config.logins.users.users), Path(config.logins.users.roles)))
    for named in config.logins.authenticators:
        made = _open_authenticator(config, named, problems)
        if made is not None:
            sources.append(made)
    return (sources[0] if len(sources) == 1 else Chain(sources)), problems


@final
class Chain:
    """An ``Authenticator``: asks others in order until one knows the client; without any, nobody can log in."""

    __slots__ = ("_sources",)

    def __init__(self, sources: Sequence[Authenticator]) -> None:
        self._sources: Final = tuple(sources)

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who this is, None if nobody knows. Raises AuthenticatorError if nobody knows and one could not tell
        now.
        """
        failure: AuthenticatorError | None = None
        for source in self._sources:
            try:
                identity = source.authenticate(credentials)
            except AuthenticatorError as error:
                failure = error
                continue
            if identity is not None:
                return identity
        if failure is not None:
            raise failure
        return None


@final
class Domains:
    """An ``Authenticator``: the domains of a login.config, by the acceptor's ``securityDomain``, else by whether the
    client has a certificate.
    """

    __slots__ = ("_certificate_domain", "_domain", "_stacks")

    def __init__(self, stacks: Mapping[str, ModuleStack], domain: str, certificate_domain: str | None) -> None:
        self._stacks: Final = stacks
        self._domain: Final = domain
        self._certificate_domain: Final = certificate_domain

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who this is in the domain of these credentials. Raises AuthenticatorError."""
        return self._stacks[self.domain_of(credentials)].authenticate(credentials)

    def domain_of(self, credentials: Credentials) -> str:
        """Return the name of the domain that decides."""
        if credentials.domain is not None:
            return credentials.domain
        if credentials.certificate is not None and self._certificate_domain is not None:
            return self._certificate_domain
        return self._domain


def _open_domains(config: BrokerConfig, jaas: JaasConfig, problems: Problems) -> Domains:
    before = problems.has_errors
    login_config = read_login_config(jaas.file, config.properties, jaas.origin, problems)
    wanted = {jaas.domain: jaas.origin}
    if jaas.certificate_domain is not None:
        wanted.setdefault(jaas.certificate_domain, jaas.origin)
    for acceptor in config.acceptors:
        domain = acceptor.params.get("securityDomain")
        if domain and acceptor.is_opened:
            wanted.setdefault(domain, acceptor.origin)
    stacks: dict[str, ModuleStack] = {}
    for domain, origin in wanted.items():
        if problems.has_errors and not before and not login_config.domains:
            break
        if not login_config.modules_of(domain):
            problems.error(
                origin,
                f"{jaas.file} has no modules for the domain {domain}, so nobody could log in there",
                suggestion=nearest(domain, login_config.domains),
            )
        stacks[domain] = _stack(config, login_config, domain, problems)
    return Domains(stacks, jaas.domain, jaas.certificate_domain)


def _stack(config: BrokerConfig, login_config: LoginConfig, domain: str, problems: Problems) -> ModuleStack:
    stacked: list[Stacked] = []
    for entry in login_config.modules_of(domain):
        module = make_module(entry, Path(login_config.file).parent, problems)
        if module is not None:
            stacked.append(Stacked(entry.flag, module))
    return ModuleStack(stacked)


def _open_authenticator(config: BrokerConfig, named: AuthenticatorConfig, problems: Problems) -> Authenticator | None:
    make = _find(named, problems)
    if make is None:
        return None
    options: dict[str, str] = {}
    for name, value in named.options.items():
        try:
            options[name.replace("-", "_")] = reveal(value, codec_of(config.password_codec, config.properties))
        except MaskedError as error:
            problems.error(named.origin, f"authenticator {named.name}: option {name}: {error}")
            return None
    try:
        made: Authenticator = make(**options)
    except (ArtemisError, ImportError) as error:
        problems.error(named.origin, f"authenticator {named.name}: {error}")
    except TypeError as error:  # an unknown option, or one that is missing; Python's text names it
        problems.error(named.origin, f"authenticator {named.name}: its options are wrong: {error}")
    else:
        return made
    return None


def _find(named: AuthenticatorConfig, problems: Problems) -> Callable[..., Any] | None:
    """Return what makes an authenticator of this name: built in, or by an entry point."""
    found = {each.name: each for each in entry_points(group=ENTRY_POINTS)}
    try:
        if named.name in BUILT_IN:
            module, _, name = BUILT_IN[named.name].partition(":")
            return getattr(import_module(module), name)  # type: ignore[no-any-return]
        if named.name in found:
            return found[named.name].load()  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        problems.error(named.origin, f"authenticator {named.name} cannot be loaded: {error}")
        return None
    known = (*BUILT_IN, *found)
    problems.error(
        named.origin,
        "there is no authenticator of this name",
        value=named.name,
        allowed=", ".join(known),
        suggestion=nearest(named.name, known),
    )
    return None
