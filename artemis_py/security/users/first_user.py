"""The first user of a broker that has none yet: made at a start, told once."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

from artemis_py.config.settings import BrokerConfig
from artemis_py.security.users.accounts import Accounts
from artemis_py.security.users.files import files_of
from artemis_py.security.users.passwords import hashed

NEW_PASSWORD: Final = "ARTEMIS_PY_NEW_PASSWORD"
"""The variable of the environment with the password of a user that is made."""
_LETTERS: Final = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without those that look alike."""
_LENGTH: Final = 20


class FirstUser(NamedTuple):
    """Who was made. ``password`` is "" if the environment chose it: whoever starts the broker knows it."""

    user: str
    role: str
    password: str
    file: str


def make_first_user(config: BrokerConfig, environ: Mapping[str, str] | None = None) -> FirstUser | None:
    """Make the user that ``first-user`` names, if the users file does not exist and security is on; else None. Its
    password is random, or that of ARTEMIS_PY_NEW_PASSWORD; the file keeps a hash. Raises UsersFileError.
    """
    named = config.users_file
    if named is None or not named.first_user or not config.security_enabled:
        return None
    files = files_of(config)
    if os.path.exists(files.users):
        return None
    chosen = (os.environ if environ is None else environ).get(NEW_PASSWORD, "")
    password = chosen or "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
    Accounts(files).add(named.first_user, str(hashed(password)), [named.first_role])
    return FirstUser(named.first_user, named.first_role, "" if chosen else password, str(files.users))
