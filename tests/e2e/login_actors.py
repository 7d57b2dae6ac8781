"""Brokers with users, and an authenticator of the test's own."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from tests.kit.process import configuration

_PERMISSIONS = "".join(
    f'<permission type="{name}" roles="amq"/>'
    for name in (
        "send", "consume", "browse", "manage", "createAddress", "deleteAddress", "createDurableQueue",
        "deleteDurableQueue", "createNonDurableQueue", "deleteNonDurableQueue", "view", "edit",
    )
)  # fmt: skip
_SECURITY = f'<security-settings><security-setting match="#">{_PERMISSIONS}</security-setting></security-settings>'

_AUTHENTICATOR = '''\
"""Users whose password is their name. The login of anybody whose name begins with slow waits until a file is there."""

import os
import time

from artemis_py.security.identity import Identity


class OwnUsers:
    def __init__(self, role):
        self._roles = frozenset({{role}})

    def authenticate(self, credentials):
        if credentials.user is None or credentials.user != credentials.password:
            return None
        if credentials.user.startswith("slow"):
            while not os.path.exists({gate!r}):
                time.sleep(0.01)  # the test opens the gate or ends the broker, and has the deadline
        return Identity(credentials.user, self._roles)
'''


secured = partial(configuration, security=_SECURITY)
"""A broker.xml with users; everybody with the role amq may do everything."""


def write_authenticator(folder: Path) -> dict[str, str]:
    """Install the authenticator ``own`` as another distribution would be; returns the environment that has it. The
    file ``open`` in the folder lets slow logins through.
    """
    site = folder / "site"
    info = site / "own_users-1.dist-info"
    info.mkdir(parents=True)
    (site / "own_users.py").write_text(_AUTHENTICATOR.format(gate=str(folder / "open")))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-users\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[artemis_py.authenticators]\nown = own_users:OwnUsers\n")
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH"), *sys.path[:1]])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
