"""Everybody who can log in, as one authenticator: users' files, the domains of a login.config, and other authenticators
that broker.xml names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from artemis_py.config.problems import Problems, nearest
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import AuthenticatorConfig, BootstrapUsers, JaasConfig
from artemis_py.errors import ArtemisError, AuthenticatorError, ConfigError, CredentialsRefusedError, NotYetError
from artemis_py.security.identity import ENTRY_POINTS, Authenticator, Credentials, Identity, WebLogin
from artemis_py.security.masked import MaskedError, codec_of, reveal
from artemis_py.security.user_files import domains_of, has_plain_files
from artemis_py.security.users.accounts import files_of
from artemis_py.security.users.authenticator import PropertiesUsers
from artemis_py.security.users.lint import problems_of_users
from artemis_py.security.users.passwords import PlainPassword, StoredPassword, UnreadablePassword, stored_password
from artemis_py.security.users.reloaded import Fetched, ReloadedFile, fetched_keys_of, logins_of, quietly
from artemis_py.security.users.reloaded import files_of as reloaded_files_of

if TYPE_CHECKING:
    from artemis_py.security.login_config import LoginConfig
    from artemis_py.security.login_modules import ModuleStack

BUILT_IN: Final = {
    "jwt": "artemis_py.security.tokens:JwtAuthenticator",
    "ldap": "artemis_py.security.directory:LdapAuthenticator",
    "oidc": "artemis_py.security.oidc:OidcAuthenticator",
}
"""Authenticators that need no entry point: ``module:class``."""


def open_realms(
    config: BrokerConfig, problems: Problems | None = None, before: Authenticator | None = None
) -> Authenticator:
    """Open every source of users that the configuration names. Blocks: it reads files. Warnings are added to
    ``problems``. What takes the place of ``before`` is not worse: a file that is keeps what it was there. Raises
    ConfigError with every error, each at its file and line.
    """
    problems = Problems() if problems is None else problems
    with quietly():
        realms = _opened(config, problems, before)
    for file in realms.files:
        for former in reloaded_files_of(before):
            file.follow(former)
        file.speak()
    for keys in realms.fetched_keys:
        for known in fetched_keys_of(before):
            if known.issuer == keys.issuer:
                keys.follow(known)
    return realms


def _opened(config: BrokerConfig, problems: Problems, before: Authenticator | None) -> Realms:
    own = before.own_domains if isinstance(before, Realms) else frozenset[str]()
    domains = None if config.logins.jaas is None else _open_domains(config, config.logins.jaas, problems, own)
    others = [_open_bootstrap(config, config.logins.bootstrap, problems)] if config.logins.bootstrap else []
    others.append(_open_files(config, problems))
    named = config.logins.authenticators
    opened = [_open_authenticator(config, each, problems) for each in named]
    others.extend(opened)
    names: set[str] = set()
    for each, authenticator in zip(named, opened, strict=True):
        if isinstance(authenticator, WebLogin):
            if authenticator.name in names:
                problems.error(
                    each.origin,
                    f"authenticator {each.name}: another one has the name {authenticator.name!r}, too; give it the "
                    "option name",
                )
            names.add(authenticator.name)
    if problems.has_errors:
        raise ConfigError(problems.in_order(config.file))
    return Realms(domains, [each for each in others if each is not None])


@final
class Realms:
    """An ``Authenticator``: asks the domains of a login.config, then others in order, until one knows the client. At an
    acceptor with a ``securityDomain`` that domain alone decides. Without any source nobody can log in.
    """

    __slots__ = ("_domains", "_sources")

    def __init__(self, domains: Domains | None, others: Sequence[Authenticator]) -> None:
        self._domains: Final = domains
        self._sources: Final = (*([] if domains is None else [domains]), *others)

    @property
    def own_domains(self) -> frozenset[str]:
        """The domains that decide and are in the login.config, and not only as ``other``."""
        return frozenset() if self._domains is None else self._domains.own

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files that say who may log in."""
        return tuple(file for source in self._sources for file in reloaded_files_of(source))

    @property
    def fetched_keys(self) -> tuple[Fetched, ...]:
        """The keys that are fetched from issuers of tokens."""
        return tuple(keys for source in self._sources for keys in fetched_keys_of(source))

    @property
    def web_logins(self) -> tuple[WebLogin, ...]:
        """Where people log in with a browser."""
        return tuple(source for source in self._sources if isinstance(source, WebLogin))

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        return (each for source in self._sources for each in logins_of(source))

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who this is, None if nobody knows. Raises AuthenticatorError if nobody knows and one could not tell
        now.
        """
        if credentials.domain is not None and self._domains is not None:
            return self._domains.authenticate(credentials)
        failure: AuthenticatorError | None = None
        for source in self._sources:
            try:
                identity = source.authenticate(credentials)
            except AuthenticatorError as error:
                failure = error if failure is None or _weight(error) >= _weight(failure) else failure
                continue
            if identity is not None:
                return identity
        if failure is not None:
            raise failure
        return None


def _weight(failure: AuthenticatorError) -> int:
    """Of several sources that do not know a client, the heaviest says why."""
    if isinstance(failure, CredentialsRefusedError):
        return 0 if failure.is_foreign else 1
    return 3 if isinstance(failure, NotYetError) else 2


@final
class Domains:
    """An ``Authenticator``: the domains of a login.config, by the acceptor's ``securityDomain``, else by whether the
    client has a certificate.
    """

    __slots__ = ("_certificate_domain", "_domain", "_stacks", "own")

    def __init__(
        self,
        stacks: Mapping[str, ModuleStack],
        domain: str,
        certificate_domain: str | None,
        own: frozenset[str] = frozenset(),
    ) -> None:
        self.own: Final = own
        self._stacks: Final = stacks
        self._domain: Final = domain
        self._certificate_domain: Final = certificate_domain

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files of all modules."""
        return tuple(file for stack in self._stacks.values() for file in stack.files)

    @property
    def fetched_keys(self) -> tuple[Fetched, ...]:
        """The keys that modules fetch."""
        return tuple(keys for stack in self._stacks.values() for keys in stack.fetched_keys)

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``. Of a file that two domains have, one may follow the changes and the other not."""
        return ((user, (name, known)) for name, stack in self._stacks.items() for user, known in stack.logins())

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


@final
class OneUser:
    """An ``Authenticator`` that knows one user."""

    __slots__ = ("_password", "_role", "_user")

    def __init__(self, user: str, password: StoredPassword, role: str) -> None:
        self._user: Final = user
        self._password: Final = password
        self._role: Final = role

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        yield self._user, (self._password, self._role)

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return the user if name and password are right."""
        if not self._password.verify(credentials.password or "") or credentials.user != self._user:
            return None
        return Identity(self._user, frozenset((self._role,)))


def _open_domains(config: BrokerConfig, jaas: JaasConfig, problems: Problems, before: frozenset[str]) -> Domains:
    from artemis_py.security.login_config import OTHER, read_login_config

    login_config = read_login_config(jaas.file, config.properties, jaas.origin, problems)
    if problems.has_errors:
        return Domains({}, jaas.domain, jaas.certificate_domain)
    stacks: dict[str, ModuleStack] = {}
    own: set[str] = set()
    for domain, origin in domains_of(config, jaas).items():
        if login_config.domains.get(domain):
            own.add(domain)
        elif domain in before:
            problems.error(
                origin,
                f"{jaas.file} no longer has the domain {domain}, so it may have been cut; to have the domain {OTHER} "
                "decide, start the broker again",
            )
        elif login_config.modules_of(domain):
            problems.warning(
                "users", origin, f"{jaas.file} has no domain {domain}, so the domain {OTHER} decides who may log in"
            )
        if not login_config.modules_of(domain):
            problems.error(
                origin,
                f"{jaas.file} has no modules for the domain {domain}, so nobody could log in there",
                suggestion=nearest(domain, login_config.domains),
            )
        stacks[domain] = _stack(config, login_config, domain, problems)
    return Domains(stacks, jaas.domain, jaas.certificate_domain, frozenset(own))


def _stack(config: BrokerConfig, login_config: LoginConfig, domain: str, problems: Problems) -> ModuleStack:
    from artemis_py.security.login_modules import ModuleStack, Stacked, make_module

    stacked: list[Stacked] = []
    for entry in login_config.modules_of(domain):
        module = make_module(entry, Path(login_config.file).parent, problems)
        if module is not None:
            stacked.append(Stacked(entry.flag, module))
    return ModuleStack(stacked)


def _open_bootstrap(config: BrokerConfig, users: BootstrapUsers, problems: Problems) -> Authenticator | None:
    """Return the first users of the basic security manager; a file of users wins, as in Artemis."""
    try:
        if users.user_file is not None and users.role_file is not None:
            files = PropertiesUsers(Path(users.user_file), Path(users.role_file), reloads=False)
            files.roles_of("")
            files.is_password_of("", "")
            return files
        if not users.password:
            problems.error(users.origin, "bootstrapPassword is empty, so nobody could log in; give the user one")
            return None
        stored = stored_password(users.password)
        if isinstance(stored, UnreadablePassword):
            codec = codec_of(config.password_codec, config.properties)
            stored = PlainPassword(reveal(users.password, codec))
    except (AuthenticatorError, MaskedError) as error:
        problems.error(users.origin, str(error))
        return None
    return OneUser(users.user or "", stored, users.role or "")


def _open_files(config: BrokerConfig, problems: Problems) -> Authenticator | None:
    """Return the users file that is named, or beside broker.xml if nothing else is named. It may be created later:
    it is read at a login.
    """
    if not has_plain_files(config):
        return None
    problems.take(problems_of_users(config))
    files = files_of(config)
    return PropertiesUsers(files.users, files.roles)


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
