"""``artemis-py user``: the users of a configuration, in its files, and those that a running broker knows."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from artemis_py.cli import operations
from artemis_py.cli.configuration import file_or_default
from artemis_py.cli.explain import name_of
from artemis_py.cli.options import add_json, role_names
from artemis_py.cli.password_input import PasswordError, add_password, has_password, password_from
from artemis_py.config.problems import nearest
from artemis_py.config.reader import load
from artemis_py.config.security_settings import PERMISSIONS
from artemis_py.config.settings import BrokerConfig
from artemis_py.security.client_login import PASSWORD
from artemis_py.security.identity import Credentials, Identity
from artemis_py.security.realms import open_realms
from artemis_py.security.rights import Access, access_to
from artemis_py.security.user_files import all_user_files, user_files_to_change
from artemis_py.security.users.accounts import NEW_PASSWORD, Account, Accounts, UserFiles, check_name
from artemis_py.security.users.passwords import HashedPassword, PlainPassword, hashed
from artemis_py.security.users.tables import UsersFileError
from artemis_py.terminal_output import BOLD, GREEN, RED, as_called, as_json, escaped, painter, say, say_made, warn
from artemis_py.text_table import Cell, Column, print_table

HELP: Final = "add, list, change, remove and test users"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``add``, ``rm``, ``list``, ``reset`` and ``test`` are about files; the others ask a running broker."""
    actions = "add|rm|list|reset|test|ls|create|update|delete"
    parser.epilog = (
        "add, rm, list, reset and test work on the files that a configuration names. "
        "ls, create, update and delete ask a running broker, which does it to its files."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar=actions)
    adding = commands.add_parser("add", help="add a user; the users file is made if there is none")
    removing = commands.add_parser("rm", help="remove a user and its roles")
    listing = commands.add_parser("list", help="print one line per user of the files")
    resetting = commands.add_parser("reset", help="change the password of a user, or its roles, or both")
    testing = commands.add_parser("test", help="would this login work, and as what?")
    for each in (adding, removing, resetting, testing):
        each.add_argument("name", metavar="USER", help="the user's name")
    for each in (adding, removing, listing, resetting, testing):
        each.add_argument(
            "--config",
            metavar="PATH",
            type=Path,
            help="configuration file, or the directory of an Artemis instance (default: broker.xml)",
        )
    for each in (adding, resetting):
        each.add_argument(
            "--role", metavar="ROLE,…", type=role_names, help="the user's roles, separated by commas; all of them"
        )
        each.add_argument("--plaintext", action="store_true", help="keep the password readable, not as a hash")
        add_password(each, NEW_PASSWORD)
    add_json(listing, "one object per line", people="table")
    add_password(testing, PASSWORD)
    add_trial_arguments(testing)
    operations.add_actions(commands, "user")


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand. Raises ConfigError for a refused configuration, and ArtemisError if it cannot be done."""
    if "operation" in args:
        return operations.run(args)
    config = load(file_or_default(args.config, f"user {args.command} … --config"))
    if args.command == "test":
        return try_login(config, args)
    files = user_files_to_change(config)
    accounts = Accounts(files)
    if args.command == "list":
        _print_accounts(accounts.all(), args.format)
        return 0
    {"add": _add, "rm": _remove, "reset": _reset}[args.command](accounts, files, args)
    if not config.security_enabled:
        warn("warning: security-enabled is false in this configuration, so nobody is asked for a password")
    return 0


def _add(accounts: Accounts, files: UserFiles, args: argparse.Namespace) -> None:
    check_name("user", args.name)
    password = password_from(args, f"password of {args.name}")
    roles: Sequence[str] = args.role or ()
    accounts.add(args.name, _stored(password, args), roles)
    say(f"added {args.name} to {files.users}{_with(roles)}")
    if not roles:
        config = "" if args.config is None else f" --config {shlex.quote(str(args.config))}"
        reset = as_called(f"artemis-py user reset {shlex.quote(args.name)} --role ROLE{config}")
        warn(f"warning: without a role {args.name} may do nothing: {reset}")


def _remove(accounts: Accounts, files: UserFiles, args: argparse.Namespace) -> None:
    accounts.remove(args.name)
    say(f"removed {args.name} from {files.users}")


def _reset(accounts: Accounts, files: UserFiles, args: argparse.Namespace) -> None:
    """With roles and without a given password, only the roles change."""
    changes_password = args.role is None or args.plaintext or has_password(args)
    stored = None
    if changes_password:
        stored = _stored(password_from(args, f"new password of {args.name}"), args)
    accounts.reset(args.name, stored, args.role)
    what = " and ".join(
        text for text, is_changed in (("password", changes_password), ("roles", args.role is not None)) if is_changed
    )
    say(f"changed the {what} of {args.name} in {files.users if changes_password else files.roles}")


def _with(roles: Sequence[str]) -> str:
    if not roles:
        return ""
    return f" with the role{'s' if len(roles) > 1 else ''} {', '.join(roles)}"


def _stored(password: str, args: argparse.Namespace) -> str:
    return password if args.plaintext else str(hashed(password))


def password_kind(account: Account) -> str:
    """How the password is stored, for people; nothing of the password."""
    stored = account.password
    if isinstance(stored, HashedPassword):
        return f"hash, {stored.iterations:,} iterations"
    return "plain text" if isinstance(stored, PlainPassword) else f"unreadable: {stored.reason}"


def _print_accounts(accounts: Sequence[Account], form: str) -> None:
    if form == "json":
        for account in accounts:
            fields = {"user": account.user, "roles": account.roles, "password": password_kind(account)}
            say_made(as_json(fields))
        return
    rows = [
        (
            account.user,
            ", ".join(account.roles) or "no role",
            Cell(password_kind(account), "" if isinstance(account.password, HashedPassword) else "yellow"),
        )
        for account in accounts
    ]
    print_table([Column("user"), Column("roles"), Column("password")], rows)


# ---- login trial -----------------------------------------------------------------------------------------------------
#
# ``artemis-py user test``: would this login work, as whom, and with which permissions?


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
    paint = painter(sys.stdout)
    if identity is None:
        say_made(f"{paint(RED, 'refused')}: {escaped(_why_not(config, name))}")
        return
    roles = ", ".join(sorted(identity.roles)) or "none, so this user may do nothing"
    user = paint(BOLD, identity.user)
    say_made(f"{paint(GREEN, 'accepted')} as user {user}; roles: {escaped(roles)}")
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
