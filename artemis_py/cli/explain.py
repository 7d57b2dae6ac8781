"""``artemis-py explain ADDRESS[::QUEUE]``: each effective setting and where it comes from."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from artemis_py.cli.configuration import add_properties, file_or_default
from artemis_py.cli.options import add_json, role_names
from artemis_py.config.explain import Explained, Explanation, explain
from artemis_py.config.problems import nearest
from artemis_py.config.reader import load
from artemis_py.config.security_settings import PERMISSIONS
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.fields import HONOURED
from artemis_py.errors import ArtemisError
from artemis_py.security.identity import Identity
from artemis_py.security.rights import Authorizer, Grant, access_to
from artemis_py.security.user_files import all_user_files, user_files_to_change
from artemis_py.security.users.accounts import Accounts
from artemis_py.terminal_output import BOLD, DIM, as_called, escaped, painter, say, say_made
from artemis_py.terminal_output import as_json as json_text
from artemis_py.text_table import Cell, Column, print_table

HELP = "show where each setting of an address or queue comes from"

Paint = Callable[[str, str], str]
Composition = Sequence[tuple[str, str, str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``explain``."""
    parser.add_argument(
        "name",
        metavar="ADDRESS[::QUEUE]",
        type=name_of,
        help=("an address, or a queue as ADDRESS::QUEUE; it need not exist"),
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="configuration file, or the folder of an instance (default: broker.xml)",
    )
    add_properties(parser)
    parser.add_argument("--all", action="store_true", help="also show settings that have their default value")
    parser.add_argument("--user", metavar="NAME", help="also show what this user may do there, and what is missing")
    parser.add_argument(
        "--roles", metavar="ROLE,…", type=role_names, help="the user's roles (default: those in the roles file)"
    )
    add_json(parser, "one object")


def run(args: argparse.Namespace) -> int:
    """Prints the explanation and returns 0. Raises ConfigError when the configuration is refused, NoFileError, and
    ArtemisError for a user who is not in the users file.
    """
    config = load(file_or_default(args.config, f"explain {args.name} --config"), properties=args.properties)
    explanation = explain(config, args.name)
    composition = compose(explanation)
    asked = None
    if args.user is not None or args.roles is not None:
        asked = verdicts(config, args.name, identity_of(config, args.user, args.roles))
    if args.format == "json":
        shown = as_json(explanation, composition)
        say_made(json_text(shown if asked is None else {**shown, "user": asked.as_json()}, indent=2))
    else:
        print_text(explanation, composition, show_all=args.all)
        if asked is not None:
            _print_user(asked, is_secured=config.security_enabled)
        for hint in hints(
            config, args.name, "" if args.config is None else f" --config {shlex.quote(str(args.config))}"
        ):
            say()
            say(as_called(hint))
    return 0


def name_of(text: str) -> str:
    """The name in an argument. Raises ArgumentTypeError for an impossible one."""
    address, separator, queue = text.partition("::")
    if not address or (separator and not queue) or "::" in queue:
        raise argparse.ArgumentTypeError(f"{text!r} is neither the name of an address nor ADDRESS::QUEUE")
    return text


def hints(config: BrokerConfig, name: str, options: str = "") -> list[str]:
    """Other possible meanings of the name: a similar declared name, or a queue of that name, which a command with these
    ``options`` explains.
    """
    address, _, queue = name.partition("::")
    queues = {each.name: each.address for declared in config.addresses for each in declared.queues}
    addresses = [declared.name for declared in config.addresses]
    found: list[str] = []
    if address not in addresses:
        guess = nearest(address, addresses)
        if guess is not None:
            found.append(f"{address} is not declared; did you mean {guess}?")
    if queue and queue not in queues:
        guess = nearest(queue, queues)
        if guess is not None:
            found.append(f"queue {queue} is not declared; did you mean {queues[guess]}::{guess}?")
    elif not queue and address in queues:
        found.append(f"there is also a queue {address}: artemis-py explain {queues[address]}::{address}{options}")
    return found


def compose(explanation: Explanation) -> Composition:
    """Return what the queue is composed of: axis, choice, reason. Empty if no queue was asked for."""
    if explanation.queue_settings is None:
        return ()
    from artemis_py.core.queue.recipe import describe

    return describe(explanation.queue_settings, explanation.address_settings, explanation.address)


def as_json(explanation: Explanation, composition: Composition) -> dict[str, object]:
    """Return what ``--json`` prints."""
    queue, address, security = explanation.queue_config, explanation.address_config, explanation.security
    return {
        "address": explanation.address,
        "declared": address is not None,
        "routing_types": list(address.routing_types) if address else [],
        "views": [f"{view.address}::{view.name}" for view in explanation.views],
        "settings": [_row_as_json(row) for row in explanation.settings],
        "queue": None
        if queue is None
        else {
            "name": queue.name,
            "declared": explanation.queue_declared,
            "routing_type": queue.routing_type,
            "attributes": [_row_as_json(row) for row in explanation.queue_attributes],
            "composition": [{"axis": axis, "choice": choice, "why": why} for axis, choice, why in composition],
        },
        "security": {
            "match": security.match if security else None,
            "file": security.origin.file if security else None,
            "line": security.origin.line if security else None,
            "permissions": {name: list(roles) for name, roles in explanation.permissions.items()},
        },
    }


def _row_as_json(row: Explained) -> dict[str, object]:
    return {
        "name": row.setting.name,
        "value": row.value,
        "unit": row.setting.unit,
        "match": row.match,
        "file": row.origin.file if row.origin else None,
        "line": row.origin.line if row.origin else None,
        "default": row.origin is None,
        "effect": row.setting.treatment,
        "reason": row.setting.reason,
    }


def print_text(explanation: Explanation, composition: Composition, *, show_all: bool = False) -> None:
    """Print the explanation as tables, starting with the composition of the queue. Defaults are shown only with
    ``show_all``.
    """
    paint = painter(sys.stdout)
    if explanation.queue_config is not None:
        _print_queue(explanation, composition, paint, show_all)
        say()
    _print_head(paint, f"address {explanation.address}", f"({_declaration(explanation)})")
    if explanation.views:
        names = ", ".join(f"{view.address}::{view.name}" for view in explanation.views)
        say(f"  views over it: {names}")
    _print_rows(explanation.settings, paint, show_all)
    _print_security(explanation, paint)


def _declaration(explanation: Explanation) -> str:
    address = explanation.address_config
    if address is None:
        return "not declared; shown as auto-creation would create it"
    queues = ", ".join(queue.name for queue in address.queues) or "none"
    return f"{address.origin}; {' and '.join(address.routing_types) or 'no routing type'}; queues: {queues}"


def _print_queue(explanation: Explanation, composition: Composition, paint: Paint, show_all: bool) -> None:
    queue = explanation.queue_config
    if queue is None:
        return
    where = str(queue.origin) if explanation.queue_declared else "not declared; shown as auto-creation would create it"
    _print_head(paint, f"queue {queue.name}", f"({where}; {queue.routing_type})")
    say_made(paint(BOLD, "composed of"))
    print_table([Column()] * 3, [(f"{axis}:", choice, why) for axis, choice, why in composition], indent=2)
    say_made(paint(BOLD, "attributes"))
    _print_rows(explanation.queue_attributes, paint, show_all)


def _print_security(explanation: Explanation, paint: Paint) -> None:
    security = explanation.security
    where = f"match {security.match}, {security.origin}" if security else "no security-setting matches"
    is_secured = explanation.is_secured
    force = "; it alone decides" if security else "; nobody may do anything"
    if not is_secured:
        force = "; security-enabled is false: everybody may do everything"
    say()
    _print_head(paint, "security", f"({where}{force})")
    if security or is_secured:
        rows = [(name, ", ".join(roles) or "nobody") for name, roles in explanation.permissions.items()]
        print_table([Column()] * 2, rows, indent=2)


def _print_user(asked: Verdicts, *, is_secured: bool) -> None:
    paint = painter(sys.stdout)
    say()
    rest = f"({'with the roles ' + ', '.join(asked.roles) if asked.roles else 'without a role'})"
    _print_head(paint, f"user {asked.user}", rest)
    rows = [(row.permission, "yes" if row.is_granted else "no", row.why) for row in asked.rows]
    print_table([Column()] * 3, rows, indent=2)
    for note in asked.notes:
        say(f"  {note}")
    if not is_secured:
        say("  security-enabled is false, so none of this is asked")


def _print_head(paint: Paint, title: str, rest: str) -> None:
    say_made(f"{paint(BOLD, title)} {escaped(rest)}")


def _print_rows(rows: Sequence[Explained], paint: Paint, show_all: bool) -> None:
    shown = [row for row in rows if show_all or row.origin is not None]
    cells = [(row.setting.name, Cell(row.value_text, "cyan" if row.origin else ""), _source(row)) for row in shown]
    if cells:
        print_table([Column()] * 3, cells, indent=2)
    if len(shown) < len(rows):
        count = len(rows) - len(shown)
        what = "1 setting has its default" if count == 1 else f"{count} settings have their defaults"
        say_made(paint(DIM, f"  {'and ' if shown else ''}{what} (--all shows them)"))


def _source(row: Explained) -> str:
    if row.origin is None:
        source = "default"
    elif row.match is None:
        source = str(row.origin)
    else:
        source = f"match {row.match}  {row.origin}"
    effect = row.setting.treatment
    return source if effect == HONOURED else f"{source}  ({effect}: {row.setting.reason})"


# ---- what a user may do ----------------------------------------------------------------------------------------------
#
# ``artemis-py explain NAME --user USER``: what somebody may do there, and what is missing for the rest.


NOBODY_NAMED: Final = "somebody"


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """One permission: is it there, and why or why not."""

    permission: str
    is_granted: bool
    why: str


@final
@dataclass(frozen=True, slots=True)
class Verdicts:
    """What one user may do at an address or queue. ``notes`` say what does not count, although it might seem so."""

    user: str
    roles: tuple[str, ...]
    rows: tuple[Verdict, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return what ``--json`` prints."""
        rows = {row.permission: {"granted": row.is_granted, "why": row.why} for row in self.rows}
        return {"user": self.user, "roles": list(self.roles), "permissions": rows, "notes": list(self.notes)}


def identity_of(config: BrokerConfig, user: str | None, roles: Sequence[str] | None) -> Identity:
    """Return somebody with these roles, or with those that the roles file gives the user. Raises ArtemisError if the
    user is not in the users file.
    """
    if roles is not None:
        return Identity(user or NOBODY_NAMED, frozenset(roles))
    places = list(all_user_files(config)) or [user_files_to_change(config)]
    known = {account.user: account.roles for files in places if files.are_there for account in Accounts(files).all()}
    if user is None or user not in known:
        guess = nearest(user or "", list(known))
        meant = f"; did you mean {guess}?" if guess is not None else ""
        raise ArtemisError(
            f"there is no user {user} in {' or '.join(str(files.users) for files in places)}{meant}; for a user from "
            "elsewhere give the roles: --roles ROLE,…"
        )
    return Identity(user, frozenset(known[user]))


def verdicts(config: BrokerConfig, name: str, identity: Identity) -> Verdicts:
    """Work out what somebody may do at ``name``, an address or ``address::queue``."""
    rights = Authorizer(config).rights_of(identity)
    access = access_to(config, name)
    address, _, queue = name.partition("::")
    rows: list[Verdict] = []
    for grant in access.grants:
        is_granted = rights.may(grant.permission, address, queue or None)
        by = sorted(identity.roles.intersection(grant.roles))
        if is_granted:
            why = f"by {' and '.join(by)}" if by else f"by the setting for {address}.{queue}, unless named in full"
        else:
            why = _missing(grant)
        rows.append(Verdict(grant.permission, is_granted, why))
    notes: list[str] = []
    if access.setting is None:
        notes.append(f"no security-setting matches {name}, so nobody may do anything")
    missing = {row.permission for row in rows if not row.is_granted}
    for other in access.passed_over:
        would = [
            permission
            for permission in PERMISSIONS
            if permission in missing and not identity.roles.isdisjoint(other.roles.get(permission, ()))
        ]
        if would:
            notes.append(f"match {other.match} ({other.origin}) grants {', '.join(would)}, but is passed over")
    return Verdicts(identity.user, tuple(sorted(identity.roles)), tuple(rows), tuple(notes))


def _missing(grant: Grant) -> str:
    inside = [role for role in grant.roles if role not in grant.mapped]
    needed = " or ".join(inside) or "nobody has it"
    if not inside:
        return needed
    mapped = [role for role in grant.roles if role in grant.mapped]
    also = f" (or {' or '.join(mapped)}, by role-mapping)" if mapped else ""
    return f"needs the role {needed}{also}"
