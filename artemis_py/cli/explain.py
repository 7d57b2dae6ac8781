"""``artemis-py explain ADDRESS[::QUEUE]``: each effective setting and where it comes from."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from artemis_py.cli import colour
from artemis_py.config.explain import Explained, Explanation, explain
from artemis_py.config.fields import HONOURED
from artemis_py.config.reader import load

HELP = "show where each setting of an address or queue comes from"

Paint = Callable[[str, str], str]
Composition = Sequence[tuple[str, str, str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``explain``."""
    parser.add_argument("name", metavar="ADDRESS[::QUEUE]", help="an address, or a queue of it; need not exist")
    parser.add_argument("--config", metavar="FILE", type=Path, default=Path("broker.xml"), help="the configuration")
    parser.add_argument(
        "--properties",
        metavar="FILE",
        type=str,
        action="append",
        default=[],
        help="a broker.properties laid over the configuration; may be repeated, later files win",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="for people or for machines")


def run(args: argparse.Namespace) -> int:
    """Prints the explanation and returns 0. Raises ConfigError when the configuration is refused."""
    explanation = explain(load(args.config, properties=args.properties), args.name)
    composition = compose(explanation)
    if args.format == "json":
        print(json.dumps(as_json(explanation, composition), indent=2, ensure_ascii=False))
    else:
        print_text(explanation, composition)
    return 0


def compose(explanation: Explanation) -> Composition:
    """Return what the queue is composed of: axis, choice, reason. Empty when no queue was asked for."""
    if explanation.queue_settings is None:
        return ()
    from artemis_py.core.recipe import describe

    return describe(explanation.queue_settings, explanation.address_settings)


def as_json(explanation: Explanation, composition: Composition) -> dict[str, object]:
    """Return what ``--format json`` prints."""
    queue, address, security = explanation.queue_config, explanation.address_config, explanation.security
    return {
        "address": explanation.address,
        "declared": address is not None,
        "routing_types": list(address.routing_types) if address else [],
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


def print_text(explanation: Explanation, composition: Composition) -> None:
    """Print the explanation as tables."""
    paint = colour.painter(sys.stdout)
    print(paint(colour.BOLD, f"address {explanation.address}"), f"({_declaration(explanation)})")
    _print_rows(explanation.settings, paint)
    if explanation.queue_config is not None:
        _print_queue(explanation, composition, paint)
    _print_security(explanation, paint)


def _declaration(explanation: Explanation) -> str:
    address = explanation.address_config
    if address is None:
        return "not declared; as it would be created by itself"
    queues = ", ".join(queue.name for queue in address.queues) or "none"
    return f"{address.origin}; {' and '.join(address.routing_types) or 'no routing type'}; queues: {queues}"


def _print_queue(explanation: Explanation, composition: Composition, paint: Paint) -> None:
    queue = explanation.queue_config
    if queue is None:
        return
    where = str(queue.origin) if explanation.queue_declared else "not declared; as it would be created by itself"
    print()
    print(paint(colour.BOLD, f"queue {queue.name}"), f"({where}; {queue.routing_type})")
    _print_rows(explanation.queue_attributes, paint)
    print()
    print(paint(colour.BOLD, "composed of"))
    _print_table([(f"{axis}:", choice, why) for axis, choice, why in composition])


def _print_security(explanation: Explanation, paint: Paint) -> None:
    security = explanation.security
    where = f"match {security.match}, {security.origin}" if security else "no security-setting matches"
    print()
    print(paint(colour.BOLD, "security"), f"({where}; this version does not enforce it)")
    _print_table([(name, ", ".join(roles) or "nobody") for name, roles in explanation.permissions.items()])


def _print_rows(rows: Sequence[Explained], paint: Paint) -> None:
    _print_table([(row.setting.name, row.value_text, _source(row)) for row in rows], paint)


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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
        if paint is not None and row[-1] != "default":
            cells[1] = paint(colour.CYAN, cells[1])
        print(f"  {'  '.join(cells)}".rstrip())
