"""The modules of a login.config that this broker has, what to do about the others, and how those of one domain decide
together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, final

from artemis_py.config.problems import Problems, nearest
from artemis_py.config.tables.declarations import Origin
from artemis_py.errors import ArtemisError, AuthenticatorError
from artemis_py.security.certificate import Parts, SubjectName, parts_of, subject_of
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.login_config import REQUIRED, REQUISITE, SUFFICIENT, ModuleEntry
from artemis_py.security.users.accounts import UserFiles
from artemis_py.security.users.authenticator import PropertiesUsers
from artemis_py.security.users.lint import lint_files
from artemis_py.security.users.reloaded import Fetched, ReloadedFile, fetched_keys_of, files_of, logins_of
from artemis_py.security.users.tables import (
    CUT,
    Entry,
    RolesTable,
    TableError,
    cut_since,
    entries_of,
    roles_table,
    text_of,
)

if TYPE_CHECKING:
    from artemis_py.security.oidc import OidcAuthenticator

# ---- what a module is ----------------------------------------------------------------------------


class LoginRefusedError(ArtemisError):
    """A module refuses these credentials. The text is for tests, and not shown."""


@final
@dataclass(slots=True)
class Subject:
    """Whom the modules of a domain have made out together: users in the order of the modules, all their roles, and
    the earliest end of a login (epoch ms; 0: none ends).
    """

    users: list[str] = field(default_factory=list)
    roles: set[str] = field(default_factory=set)
    expires_ms: int = 0
    why_these_roles: str = ""

    def add(self, user: str, *roles: str) -> None:
        """Add a user and roles."""
        if user not in self.users:
            self.users.append(user)
        self.roles.update(roles)

    def take(self, identity: Identity) -> None:
        """Add somebody with roles and an end."""
        self.add(identity.user, *identity.roles)
        self.why_these_roles = identity.why_these_roles
        if identity.expires_ms:
            self.expires_ms = min(self.expires_ms or identity.expires_ms, identity.expires_ms)


class LoginModule(Protocol):
    """One way to check a login. It has no state of an attempt, so threads share it.

    A login has two phases: every module is asked by ``login``; if the flags say that it has succeeded, every module
    gets ``commit``. What ``login`` returned, ``commit`` gets.
    """

    def login(self, credentials: Credentials) -> str | Identity | None:
        """Return the user that has logged in (an identity, if the roles are known with it, and nothing is left for
        ``commit``), or None if the module has nothing to say. Raises LoginRefusedError, and AuthenticatorError if it
        cannot tell now.
        """

    def commit(self, user: str | None, subject: Subject) -> bool:
        """Add to the subject; ``user`` is None if this module was not asked, said nothing or refused. Returns whether
        that counts as success. Raises as ``login`` does.
        """


# ---- the modules of one domain as an authenticator -----------------------------------------------
#
# With the rules of Java's ``LoginContext`` about their flags.


class Stacked(NamedTuple):
    """A module with its flag."""

    flag: str
    module: LoginModule


@final
class ModuleStack:
    """An ``Authenticator``: asks modules in order, then lets them add users and roles in the same order.

    Both phases follow the flags: ``required`` must succeed, but the others are still asked; ``requisite`` must succeed,
    else it ends there; ``sufficient`` ends it if it succeeds and nothing required has failed; ``optional`` need not
    succeed. At least one module must succeed.
    """

    __slots__ = ("_modules",)

    def __init__(self, modules: Sequence[Stacked]) -> None:
        self._modules: Final = tuple(modules)

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files of all modules."""
        return tuple(file for _, module in self._modules for file in files_of(module))

    @property
    def fetched_keys(self) -> tuple[Fetched, ...]:
        """The keys that modules fetch."""
        return tuple(keys for _, module in self._modules for keys in fetched_keys_of(module))

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        return (each for _, module in self._modules for each in logins_of(module))

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Return who this is, None if nobody. Raises AuthenticatorError if it is nobody and a module could not tell."""
        attempt = _Attempt(self._modules)
        if attempt.phase(lambda each: attempt.login(each, credentials)) and attempt.phase(attempt.commit):
            subject = attempt.subject
            if subject.users:
                roles = frozenset(subject.roles)
                return Identity(subject.users[0], roles, subject.expires_ms, subject.why_these_roles)
        if attempt.failure is not None:
            raise attempt.failure
        return None


@final
class _Attempt:
    def __init__(self, modules: Sequence[Stacked]) -> None:
        self._modules: Final = modules
        self._found: Final[dict[int, str | Identity | None]] = {}
        self.subject: Final = Subject()
        self.failure: AuthenticatorError | None = None

    def login(self, place: int, credentials: Credentials) -> bool:
        found = self._found[place] = self._modules[place].module.login(credentials)
        return found is not None

    def commit(self, place: int) -> bool:
        found = self._found.get(place)
        if isinstance(found, Identity):
            self.subject.take(found)
            return True
        return self._modules[place].module.commit(found, self.subject)

    def phase(self, step: Callable[[int], bool]) -> bool:
        """Carry out a step for each module, as far as the flags say. Returns whether the phase succeeded."""
        has_succeeded = has_failed = False
        for place, (flag, _) in enumerate(self._modules):
            try:
                succeeded = step(place)
            except (LoginRefusedError, AuthenticatorError) as error:
                if isinstance(error, AuthenticatorError):
                    self.failure = error
                if flag == REQUISITE:
                    return False
                has_failed = has_failed or flag == REQUIRED
                continue
            if succeeded and flag == SUFFICIENT and not has_failed:
                return True
            has_succeeded = has_succeeded or succeeded
        return has_succeeded and not has_failed


# ---- which there are -----------------------------------------------------------------------------

PACKAGE: Final = "org.apache.activemq.artemis.spi.core.security.jaas."
_OPTION: Final = "org.apache.activemq.jaas."
_USER_FILE: Final = f"{_OPTION}properties.user"
_ROLE_FILE: Final = f"{_OPTION}properties.role"
_PASSWORD_CODEC: Final = f"{_OPTION}properties.password.codec"
_DN_USER_FILE: Final = f"{_OPTION}textfiledn.user"
_DN_ROLE_FILE: Final = f"{_OPTION}textfiledn.role"
_GUEST_USER: Final = f"{_OPTION}guest.user"
_GUEST_ROLE: Final = f"{_OPTION}guest.role"
_INVALIDATE: Final = "credentialsInvalidate"
_OF_FILES: Final = ("debug", "reload", "baseDir", "normalise", "decrypt")

_ONLY_AMQP: Final = "only AMQP clients log in that way; use PropertiesLoginModule"
_KERBEROS: Final = "Kerberos needs a protocol with SASL, such as AMQP; use PropertiesLoginModule or certificates"
_TOKENS: Final = 'for signed tokens write <authenticator name="jwt"> into authentication in broker.xml'
_OIDC: Final = 'for tokens of Keycloak write OIDCLoginModule, or <authenticator name="oidc"> in broker.xml'
_REFUSED: Final = {
    "LDAPLoginModule": 'write <authenticator name="ldap"> into authentication in broker.xml',
    "LdapLoginModule": 'write <authenticator name="ldap"> into authentication in broker.xml',
    "KubernetesLoginModule": _TOKENS,
    "BearerTokenLoginModule": _OIDC,
    "DirectAccessGrantsLoginModule": _OIDC,
    "Krb5LoginModule": _KERBEROS,
    "PrincipalConversionLoginModule": _KERBEROS,
    "SCRAMLoginModule": _ONLY_AMQP,
    "SCRAMPropertiesLoginModule": _ONLY_AMQP,
    "InVMLoginModule": "it is for brokers inside a Java program; use PropertiesLoginModule",
}
"""What to do instead of a module, by the name of its class without the package."""


class _Kind(NamedTuple):
    """How a module is made, and the options it has."""

    make: Callable[[ModuleEntry, Path, Problems], LoginModule | None]
    options: tuple[str, ...]


def make_module(entry: ModuleEntry, folder: Path, problems: Problems) -> LoginModule | None:
    """Return the module of an entry, None after adding the reason why not. ``folder`` is that of the login.config."""
    kind = _KINDS.get(entry.class_name.removeprefix(PACKAGE)) if entry.class_name.startswith(PACKAGE) else None
    if kind is None:
        problems.error(entry.origin, _refusal(entry.class_name))
        return None
    for name, origin in entry.option_origins.items():
        if name not in kind.options:
            problems.warning(
                "left-out",
                origin,
                f"{_short(entry.class_name)} has no option {name}",
                suggestion=nearest(name, kind.options),
            )
    return kind.make(entry, folder, problems)


def _refusal(class_name: str) -> str:
    short = _short(class_name)
    if short in _KINDS:
        return f"the module {class_name} is another broker's; write {PACKAGE}{short}"
    instead = _REFUSED.get(
        short, "it is a Java class and cannot run here; an authenticator in Python can take its place"
    )
    return f"the login module {class_name} is not supported: {instead} (docs/security.md)"


def _short(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def user_files(entry: ModuleEntry, folder: Path) -> UserFiles:
    """Return the files of a PropertiesLoginModule; ``folder`` is that of the login.config."""
    return UserFiles(_path(entry, folder, _USER_FILE, "user"), _path(entry, folder, _ROLE_FILE, "role"))


def _properties_module(entry: ModuleEntry, folder: Path, problems: Problems) -> LoginModule | None:
    codec = entry.options.get(_PASSWORD_CODEC)
    if codec is not None:
        problems.error(
            entry.option_origins[_PASSWORD_CODEC],
            f"the password codec {codec.partition(';')[0]} is a Java class and cannot run here; let `artemis-py user "
            "reset` write the passwords as hashes, which both brokers read",
        )
        return None
    files = user_files(entry, folder)
    users = PropertiesUsers(files.users, files.roles, reloads=_is_true(entry, "reload"))
    if not _can_be_read(users.read, entry.origin, problems):
        return None
    lint_files(files, problems)
    return PropertiesModule(users)


def certificate_files(entry: ModuleEntry, folder: Path) -> UserFiles:
    """Return the files of a TextFileCertificateLoginModule; ``folder`` is that of the login.config."""
    return UserFiles(_path(entry, folder, _DN_USER_FILE, ""), _path(entry, folder, _DN_ROLE_FILE, ""))


def _text_file_module(entry: ModuleEntry, folder: Path, problems: Problems) -> LoginModule | None:
    files = certificate_files(entry, folder)
    module = TextFileModule(files.users, files.roles, reloads=_is_true(entry, "reload"))
    return module if _can_be_read(module.read, entry.origin, problems) else None


def guest_of(entry: ModuleEntry) -> tuple[str, str]:
    """Return the user and the role of a GuestLoginModule."""
    options: Mapping[str, str] = entry.options
    return options.get(_GUEST_USER, "guest"), options.get(_GUEST_ROLE, "guests")


def _guest_module(entry: ModuleEntry, folder: Path, problems: Problems) -> LoginModule:
    del folder, problems
    user, role = guest_of(entry)
    return GuestModule(user, role, without_password_only=_is_true(entry, _INVALIDATE))


def _external_module(entry: ModuleEntry, folder: Path, problems: Problems) -> LoginModule:
    del entry, folder, problems
    return ExternalModule()


def _oidc_module(entry: ModuleEntry, folder: Path, problems: Problems) -> LoginModule | None:
    """Artemis' defaults, but that an audience must be named: else tokens for any other service would let in."""
    options: Mapping[str, str] = entry.options
    for name in ("provider", "audience"):
        if not options.get(name):
            problems.error(entry.origin, f"OIDCLoginModule needs the option {name} (docs/oidc.md)")
            return None
    for name, why in _NEVER.items():
        if _is_true(entry, name):
            problems.error(entry.option_origins[name], f"{name} is not supported: {why}")
            return None
    paths = [each.strip() for each in options.get("identityPaths", "sub").split(",")]
    if len(paths) > 1:
        problems.warning("left-out", entry.option_origins["identityPaths"], f"only {paths[0]} names the user")
    try:
        from artemis_py.security.oidc import OidcAuthenticator

        authenticator = OidcAuthenticator(
            issuer=options["provider"],
            client_id=options["audience"],
            audience=options["audience"],
            user_claim=paths[0],
            roles_claim=options.get("rolesPaths", ""),
            leeway=options.get("maxClockSkew", "60"),
            ca_file=str(_path(entry, folder, "caCertificate", "")) if "caCertificate" in options else "",
        )
    except (ArtemisError, ImportError) as error:
        problems.error(entry.origin, f"OIDCLoginModule: {error}")
        return None
    return OidcModule(authenticator)


_NEVER: Final = {
    "allowPlainJWT": "a token without a signature may be anybody's",
    "requireOAuth2MTLS": "tokens that are bound to a certificate are refused",
}
_OF_OIDC: Final = (
    "provider", "audience", "identityPaths", "rolesPaths", "maxClockSkew", "caCertificate", *_NEVER, "debug",
    "cacheKeysSeconds", "metadataRetrySeconds", "httpTimeout", "tlsVersion", "userPrincipalClass", "rolePrincipalClass",
)  # fmt: skip

_KINDS: Final = {
    "PropertiesLoginModule": _Kind(_properties_module, (_USER_FILE, _ROLE_FILE, _PASSWORD_CODEC, *_OF_FILES)),
    "TextFileCertificateLoginModule": _Kind(_text_file_module, (_DN_USER_FILE, _DN_ROLE_FILE, *_OF_FILES)),
    "GuestLoginModule": _Kind(_guest_module, (_GUEST_USER, _GUEST_ROLE, _INVALIDATE, "debug")),
    "OIDCLoginModule": _Kind(_oidc_module, _OF_OIDC),
    "ExternalCertificateLoginModule": _Kind(_external_module, ("debug",)),
}


def _is_true(entry: ModuleEntry, option: str) -> bool:
    return entry.options.get(option, "").lower() == "true"


def _path(entry: ModuleEntry, folder: Path, option: str, default: str) -> Path:
    """Return the path of a file: relative to ``baseDir``, else to the folder of the login.config. As in Java, even a
    path that begins with ``/`` is below that folder; such a file mostly does not exist, so the path itself is taken.
    """
    name = entry.options.get(option, default)
    base = Path(entry.options["baseDir"]) if "baseDir" in entry.options else folder
    below = base / name.lstrip("/")
    return below if os.path.exists(below) else base / name


def _can_be_read(read: Callable[[], object], origin: Origin, problems: Problems) -> bool:
    """Read files for the first time. A module without its files would refuse everybody."""
    try:
        read()
    except AuthenticatorError as error:
        problems.error(origin, str(error))
        return False
    return True


# ---- GuestLoginModule ----------------------------------------------------------------------------


@final
class GuestModule:
    """Logs everybody in as ``user`` with ``role``; if ``without_password_only`` (``credentialsInvalidate``), it says
    nothing to clients that give a password.
    """

    __slots__ = ("_role", "_user", "_without_password_only")

    def __init__(self, user: str, role: str, *, without_password_only: bool) -> None:
        self._user: Final = user
        self._role: Final = role
        self._without_password_only: Final = without_password_only

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        yield self._user, (GuestModule, self._role)

    def login(self, credentials: Credentials) -> str | None:
        """See LoginModule."""
        return None if self._without_password_only and credentials.password is not None else self._user

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule."""
        if user is None:
            return False
        subject.add(user, self._role)
        return True


# ---- OIDCLoginModule -----------------------------------------------------------------------------


@final
class OidcModule:
    """Logs in who has a token of a provider; it says nothing to clients without one."""

    __slots__ = ("_authenticator",)

    def __init__(self, authenticator: OidcAuthenticator) -> None:
        self._authenticator: Final = authenticator

    @property
    def fetched_keys(self) -> tuple[Fetched, ...]:
        """Those of the provider."""
        return self._authenticator.fetched_keys

    def login(self, credentials: Credentials) -> Identity | None:
        """See LoginModule. A token that does not count is an AuthenticatorError that says why."""
        return self._authenticator.authenticate(credentials)

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule: it had nothing to say."""
        del user, subject
        return False


# ---- PropertiesLoginModule -----------------------------------------------------------------------


@final
class PropertiesModule:
    """Logs users of the files in, and gives roles to users that modules before it have logged in."""

    __slots__ = ("_users",)

    def __init__(self, users: PropertiesUsers) -> None:
        self._users: Final = users

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files of users and roles."""
        return self._users.files

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        return self._users.logins()

    def login(self, credentials: Credentials) -> str | None:
        """See LoginModule."""
        user = credentials.user
        if user is None or not self._users.is_password_of(user, credentials.password or ""):
            raise LoginRefusedError("no such user, or another password")
        return user

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule."""
        if user is not None:
            subject.add(user)
        for known in subject.users:
            subject.roles.update(self._users.roles_of(known))
        return user is not None


# ---- TextFileCertificateLoginModule and ExternalCertificateLoginModule ---------------------------
#
# The subject of a certificate is the login. The TLS handshake has verified the certificate; these modules only say
# whose it is.


@final
@dataclass(frozen=True, slots=True)
class CertificateTable:
    """Users by the parts of a name and by its text, and by regular expressions in the order of the file."""

    by_parts: Mapping[Parts, str]
    by_text: Mapping[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]
    flaws: Mapping[str, str]
    """By user what is wrong with a line that lets nobody in."""
    users: frozenset[str]
    """All users that the file names."""

    def user_of(self, name: SubjectName) -> str | None:
        """Return the user with this name: an exact entry wins, then the first expression that matches all of it."""
        user = self.by_text.get(name.text)
        if user is None:
            user = self.by_parts.get(name.parts)
        if user is None:
            user = next((each for pattern, each in self.patterns if matches(pattern, name.text)), None)
        return user


def certificate_table(data: bytes) -> CertificateTable:
    """Read a file of ``user=name`` or ``user=/expression/``. Raises TableError."""
    found = {entry.key: entry for entry in entries_of(text_of(data))}  # of a user given twice the last line counts
    by_parts: dict[Parts, str] = {}
    by_text: dict[str, str] = {}
    patterns: list[tuple[re.Pattern[str], str]] = []
    flaws: dict[str, str] = {}
    for user, entry in found.items():
        value = entry.value
        flaw = _flaw(entry)
        if flaw:
            flaws[user] = f"line {entry.first}: {flaw}"
        elif len(value) > 2 and value.startswith("/") and value.endswith("/"):
            try:
                patterns.append((compile_java(value[1:-1]), user))
            except RegexError as error:
                raise TableError(entry.first, f"the expression of {user}: {error}") from None
        else:
            by_text[value] = user
            parts = parts_of(value)
            if parts is not None:
                by_parts[parts] = user
    return CertificateTable(by_parts, by_text, tuple(patterns), flaws, frozenset(found))


def _flaw(entry: Entry) -> str:
    """What is missing in an entry; empty: nothing."""
    if not entry.is_whole:
        return CUT
    if not entry.value:
        return "the user has no name of a certificate"
    if entry.value.startswith("/") and (len(entry.value) < 3 or not entry.value.endswith("/")):
        return "an expression begins here that is not whole: it is /expression/"
    return ""


@final
class TextFileModule:
    """Users by the subject of their certificate in one file, roles in another."""

    __slots__ = ("_roles", "_users")

    def __init__(self, users_file: Path, roles_file: Path, *, reloads: bool) -> None:
        self._users: Final = ReloadedFile[CertificateTable](users_file, certificate_table, reloads=reloads)
        self._roles: Final = ReloadedFile[RolesTable](
            roles_file, self._roles_in, context=self._users.value, worse=cut_since, reloads=reloads
        )

    def _roles_in(self, data: bytes) -> RolesTable:
        return roles_table(data, self._users.value().users)

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """Both files."""
        return self._users, self._roles

    def logins(self) -> Iterator[tuple[str, object]]:
        """See ``logins_of``."""
        users, roles = self._users.in_force, self._roles.in_force
        if users is None or roles is None:
            return
        names: dict[str, object] = {user: text for text, user in users.by_text.items()}
        names.update({user: pattern for pattern, user in users.patterns})
        for user in users.users:
            yield user, (self._users.path, names.get(user), roles.by_user.get(user))

    def read(self) -> None:
        """Read both files. Raises AuthenticatorError if one cannot be read."""
        self._users.value()
        self._roles.value()

    def login(self, credentials: Credentials) -> str | None:
        """See LoginModule."""
        if credentials.certificate is None:
            raise LoginRefusedError("the client has no certificate")
        user = self._users.value().user_of(_subject(credentials.certificate))
        if user is None:
            raise LoginRefusedError("no user has this certificate")
        return user

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule. Unlike the others, Artemis' module fails here if its login did."""
        if user is None:
            raise LoginRefusedError("it has logged nobody in")
        subject.add(user, *self._roles.value().by_user.get(user, ()))
        return True


@final
class ExternalModule:
    """The subject of the certificate is itself the name of the user. Roles come from a module after it."""

    __slots__ = ()

    def login(self, credentials: Credentials) -> str | None:
        """See LoginModule."""
        return None if credentials.certificate is None else _subject(credentials.certificate).text

    def commit(self, user: str | None, subject: Subject) -> bool:
        """See LoginModule. As in Artemis this counts as success even if nobody has logged in."""
        if user is not None:
            subject.add(user)
        return True


def _subject(certificate: bytes) -> SubjectName:
    try:
        return subject_of(certificate)
    except ValueError as error:
        raise AuthenticatorError(f"the subject of a client's certificate cannot be read: {error}") from None


# ---- Java's regular expressions, as Python's -----------------------------------------------------
#
# Only what both read alike is accepted. Everything else is refused by name: a wrong guess would let somebody in.

_LENGTH_MAX: Final = 4096
_SAFE: Final = re.compile(
    r"""
    [^\\\[\](){}*+?|^$.]               # a character that stands for itself
    | [.^$|)]
    | \((?:\?(?::|=|!|<=|<!))?(?![?*+])  # a group, or a look around
    | [*+?][?+]?                       # how often: greedy, lazy or possessive
    | \{[0-9]{1,4}(?:,[0-9]{0,4})?\}[?+]?
    | \\(?:[dDwWsStnrf1-9]|[^A-Za-z0-9\s])
    | \[\^?(?:(?!--)(?:\\(?:[dDwWsStnrf]|[^A-Za-z0-9\s])|[^\\\[\]&|~]))+\]  # a set without operators
    """,
    re.VERBOSE,
)
_FLAGS: Final = re.compile(r"\(\?(i?)\)")
_LINE_ENDS: Final = re.compile("[\n\r\x85\u2028\u2029]")


class RegexError(ArtemisError):
    """A regular expression is none, or means something else in Java."""


def compile_java(pattern: str) -> re.Pattern[str]:
    """Return a pattern for :func:`matches`. Raises RegexError."""
    if len(pattern) > _LENGTH_MAX:
        raise RegexError(f"a regular expression may have {_LENGTH_MAX} characters")
    flags, place = re.ASCII, 0
    found = _FLAGS.match(pattern)
    if found is not None:
        flags |= re.IGNORECASE if found[1] else re.ASCII
        place = found.end()
    begin = place
    while place < len(pattern):
        found = _SAFE.match(pattern, place)
        if found is None:
            raise RegexError(f"from {pattern[place : place + 8]!r} on, Java and Python read it differently")
        place = found.end()
    try:
        return re.compile(pattern[begin:], flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise RegexError(f"it is not a regular expression: {error}") from None


def matches(pattern: re.Pattern[str], text: str) -> bool:
    """Does the pattern match the whole text? A text of several lines never: what a point means differs there."""
    return _LINE_ENDS.search(text) is None and pattern.fullmatch(text) is not None
