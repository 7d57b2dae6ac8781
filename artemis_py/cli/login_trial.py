"""``artemis-py user test``: would this login work, as whom, and with which permissions?"""

from __future__ import annotations

import argparse
import sys

from artemis_py.cli import colour
from artemis_py.cli.explain import name_of
from artemis_py.cli.output_form import add_json
from artemis_py.cli.password_input import PasswordError, password_from
from artemis_py.config.problems import nearest
from artemis_py.config.security_settings import PERMISSIONS
from artemis_py.config.settings import BrokerConfig
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.realms import open_realms
from artemis_py.security.rights import Access, access_to
from artemis_py.security.user_files import all_user_files
from artemis_py.security.users.accounts import Accounts
from artemis_py.security.users.tables import UsersFileError
from artemis_py.shown import as_json, escaped, say, say_made, warn


def add_trial_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--address``, ``--acceptor`` and ``--json``."""
    parser.add_argument(
        "--address",
        metavar="ADDRESS[::QUEUE]",
        type=name_of,
        help="also show what the user may do there; it need not exist",
    )
    parser.add_argument("--acceptor", metavar="NAME", help="log in at this acceptor, so by its securityDomain")
    add_json(parser, "one object")


def try_login(config: BrokerConfig, args: argparse.Namespace) -> int:
    """Ask all sources of users, as the broker would; returns 0 if the login works, else 1. Raises ConfigError if the
    sources cannot be opened, and AuthenticatorError if one cannot answer now.
    """
    domain = _domain(config, args.acceptor)
    authenticator = open_realms(config)
    password = password_from(args, f"password of {args.name}")
    identity = authenticator.authenticate(Credentials(args.name, password, domain=domain))
    access = access_to(config, args.address) if args.address else None
    if args.format == "json":
        say_made(as_json(_fields(args.name, identity, access), indent=2))
    else:
        _print(config, args.name, identity, access)
    return 0 if identity is not None else 1


def _domain(config: BrokerConfig, acceptor: str | None) -> str | None:
    if acceptor is None:
        return None
    for each in config.acceptors:
        if each.name == acceptor:
            return each.params.get("securityDomain") or None
    names = [each.name for each in config.acceptors]
    guess = nearest(acceptor, names)
    hint = f"did you mean {guess}?" if guess else f"the acceptors are {', '.join(names) or 'none'}"
    raise PasswordError(f"there is no acceptor {acceptor}; {hint}")


def _fields(name: str, identity: Identity | None, access: Access | None) -> dict[str, object]:
    if identity is None:
        return {"login": name, "works": False}
    fields: dict[str, object] = {"login": name, "works": True, "user": identity.user, "roles": sorted(identity.roles)}
    if access is not None:
        allowed = access.permissions_of(identity.roles)
        fields["address"] = access.name
        fields["permissions"] = {permission: permission in allowed for permission in PERMISSIONS}
    return fields


def _print(config: BrokerConfig, name: str, identity: Identity | None, access: Access | None) -> None:
    paint = colour.painter(sys.stdout)
    if identity is None:
        say_made(f"{paint(colour.RED, 'refused')}: {escaped(_why_not(config, name))}")
        return
    roles = ", ".join(sorted(identity.roles)) or "none, so this user may do nothing"
    user = paint(colour.BOLD, identity.user)
    say_made(f"{paint(colour.GREEN, 'accepted')} as user {user}; roles: {escaped(roles)}")
    if access is not None:
        allowed = access.permissions_of(identity.roles)
        refused = [permission for permission in PERMISSIONS if permission not in allowed]
        decides = f"match {access.setting.match}, {access.setting.origin}" if access.setting else "no match"
        say(f"on {access.name} ({decides})")
        say(f"  may: {', '.join(allowed) or 'nothing'}")
        say(f"  may not: {', '.join(refused) or '-'}")
    if not config.security_enabled:
        warn("warning: security-enabled is false in this configuration, so the broker asks nobody for a password")


def _why_not(config: BrokerConfig, name: str) -> str:
    """Whoever may read the files may know whether the user exists."""
    files = all_user_files(config)
    for each in files:
        try:
            if any(account.user == name for account in Accounts(each).all()):
                return f"the password is not that of {name} in {each.users}"
        except UsersFileError as error:
            return str(error)
    where = ", ".join(str(each.users) for each in files)
    return f"there is no user {name}" + (f" in {where}" if where else "")
