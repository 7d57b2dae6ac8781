"""Which modules of a login.config this broker has, and what to do about the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from artemis_py.config.problems import Problems, nearest
from artemis_py.config.tables.declarations import Origin
from artemis_py.errors import ArtemisError, AuthenticatorError
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.jaas.certificates import ExternalModule, TextFileModule
from artemis_py.security.jaas.login_config import ModuleEntry
from artemis_py.security.jaas.stack import LoginModule, LoginRefusedError, Subject
from artemis_py.security.users.accounts import UserFiles
from artemis_py.security.users.authenticator import PropertiesUsers
from artemis_py.security.users.lint import lint_files
from artemis_py.security.users.reloaded import Fetched, ReloadedFile

if TYPE_CHECKING:
    from artemis_py.security.oidc import OidcAuthenticator

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
