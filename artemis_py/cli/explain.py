"""``artemis-py explain ADDRESS[::QUEUE]``: each effective setting and where it comes from."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from artemis_py.cli import colour
from artemis_py.cli.configuration import add_properties, file_or_default
from artemis_py.cli.explain_user import Verdicts, identity_of, verdicts
from artemis_py.cli.output_form import add_json
from artemis_py.config.explain import Explained, Explanation, explain
from artemis_py.config.problems import nearest
from artemis_py.config.reader import load
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.fields import HONOURED
from artemis_py.shown import as_json as json_text
from artemis_py.shown import escaped, say, say_made

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
        "--roles", metavar="ROLE,…", type=roles_of, help="the user's roles (default: those in the roles file)"
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
        for hint in hints(config, args.name):
            say()
            say(hint)
    return 0


def name_of(text: str) -> str:
    """The name in an argument. Raises ArgumentTypeError for an impossible one."""
    address, separator, queue = text.partition("::")
    if not address or (separator and not queue) or "::" in queue:
        raise argparse.ArgumentTypeError(f"{text!r} is neither the name of an address nor ADDRESS::QUEUE")
    return text


def roles_of(text: str) -> list[str]:
    """The roles in an argument."""
    return [role.strip() for role in text.split(",") if role.strip()]


def hints(config: BrokerConfig, name: str) -> list[str]:
    """Other possible meanings of the name: a similar declared name, or a queue of that name."""
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
        found.append(f"there is also a queue {address}: artemis-py explain {queues[address]}::{address}")
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
    paint = colour.painter(sys.stdout)
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
    say_made(paint(colour.BOLD, "composed of"))
    _print_table([(f"{axis}:", choice, why) for axis, choice, why in composition])
    say_made(paint(colour.BOLD, "attributes"))
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
        _print_table([(name, ", ".join(roles) or "nobody") for name, roles in explanation.permissions.items()])


def _print_user(asked: Verdicts, *, is_secured: bool) -> None:
    paint = colour.painter(sys.stdout)
    say()
    rest = f"({'with the roles ' + ', '.join(asked.roles) if asked.roles else 'without a role'})"
    _print_head(paint, f"user {asked.user}", rest)
    _print_table([(row.permission, "yes" if row.is_granted else "no", row.why) for row in asked.rows])
    for note in asked.notes:
        say(f"  {note}")
    if not is_secured:
        say("  security-enabled is false, so none of this is asked")


def _print_head(paint: Paint, title: str, rest: str) -> None:
    say_made(f"{paint(colour.BOLD, title)} {escaped(rest)}")


def _print_rows(rows: Sequence[Explained], paint: Paint, show_all: bool) -> None:
    shown = [row for row in rows if show_all or row.origin is not None]
    if shown:
        _print_table([(row.setting.name, row.value_text, _source(row)) for row in shown], paint)
    if len(shown) < len(rows):
        count = len(rows) - len(shown)
        what = "1 setting has its default" if count == 1 else f"{count} settings have their defaults"
        say_made(paint(colour.DIM, f"  {'and ' if shown else ''}{what} (--all shows them)"))


def _source(row: Explained) -> str:
    if row.origin is None:
        source = "default"
    elif row.match is None:
        source = str(row.origin)
    else:
        source = f"match {row.match}  {row.origin}"
    effect = row.setting.treatment
    return source if effect == HONOURED else f"{source}  ({effect}: {row.setting.reason})"


def _print_table(rows: Sequence[tuple[str, ...]], paint: Paint | None = None) -> None:
    rows = [tuple(map(escaped, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        if paint is not None and row[-1] != "default":
            cells[1] = paint(colour.CYAN, cells[1])
        say_made(f"  {'  '.join(cells)}".rstrip())
