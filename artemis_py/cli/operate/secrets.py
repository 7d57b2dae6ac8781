"""Passwords among the arguments of an operation: from a file, the environment or a prompt, never from a word of the
command line, and never in a URL.
"""

from __future__ import annotations

import argparse
import json

from artemis_py.cli.password_input import has_new_password, new_password_from
from artemis_py.management.operation import Operation


def body_of(operation: Operation, args: argparse.Namespace) -> bytes | None:
    """The body of a request with them; None: there are none. One that is optional is asked for if nothing else would
    change. Raises PasswordError.
    """
    given = vars(args)
    found: dict[str, str] = {}
    for argument in operation.arguments:
        if not argument.is_secret:
            continue
        others = [one for one in operation.arguments if not one.is_required and not one.is_secret]
        is_alone = all(given[one.name] is None for one in others)
        if argument.is_required or has_new_password(args) or is_alone:
            found[argument.name] = new_password_from(args, f"new {argument.name} of {args.name}")
    return json.dumps(found).encode() if found else None
