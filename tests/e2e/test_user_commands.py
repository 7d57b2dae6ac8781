"""docs/security.md on users: each of its commands, against a broker that runs on the files that they change."""

from __future__ import annotations

import os
import re
import shlex
from functools import partial
from pathlib import Path

import pytest

from artemis_py.security.users.accounts import NEW_PASSWORD
from tests.kit.client import is_greeted
from tests.kit.forks import run_text
from tests.kit.process import configuration, running
from tests.kit.users import give_user

ROOT = Path(__file__).resolve().parents[2]
SECTION = (ROOT / "docs" / "security.md").read_text("utf-8").split("\n## ")[1]
SECURED = configuration(
    {"stomp": "tcp://127.0.0.1:0?protocols=STOMP;anycastPrefix=/queue/"},
    security="<security-invalidation-interval>0</security-invalidation-interval><security-settings>"
    '<security-setting match="#"><permission type="send" roles="amq"/></security-setting></security-settings>',
)

pytestmark = pytest.mark.e2e


def test_each_command_of_the_document(tmp_path: Path) -> None:
    """The broker notices each change at the next login."""
    lines = "".join(re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)).splitlines()
    assert all(line.startswith("artemis-py ") for line in lines)
    adding, listing, testing, resetting, removing, mask = (shlex.split(line)[1:] for line in lines)
    variables = {NEW_PASSWORD: "ann's own", "ARTEMIS_PY_PASSWORD": "ann's own", "PYTHONPATH": str(ROOT)}
    run = partial(run_text, folder=tmp_path, environment={**os.environ, **variables}, timeout=120, check=True)
    give_user(tmp_path, "admin", "first")
    with running(SECURED, tmp_path) as broker:
        assert is_greeted(broker.port, login="admin", passcode="first")
        assert not is_greeted(broker.port, login="ann", passcode="ann's own")
        assert run(adding).stdout == "added ann to artemis-users.properties with the role amq\n"
        assert is_greeted(broker.port, login="ann", passcode="ann's own")
        assert re.search(r"^ann +amq +hash", run(listing).stdout, re.MULTILINE)
        assert "accepted as user ann; roles: amq" in run(testing).stdout
        assert "may: send" in run(testing).stdout
        run(resetting)
        assert re.search(r"^ann +amq, view +hash", run(listing).stdout, re.MULTILINE)
        run(removing)
        broker.eventually(
            "ann is out", lambda: is_greeted(broker.port, login="ann", passcode="ann's own"), lambda seen: not seen
        )
        users_file = tmp_path / "artemis-users.properties"
        users_file.write_text("admin = \\u12\n")
        assert is_greeted(broker.port, login="admin", passcode="first")
        assert "line=1 warning: \\u must be followed by four hexadecimal digits; what was read" in broker.said
    assert run(mask).stdout.startswith("ENC(100000:")
    assert "ann's own" not in broker.said
