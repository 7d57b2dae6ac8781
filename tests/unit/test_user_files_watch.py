"""Whose login has changed, as the files of users say that are in force."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.config.reader import load
from artemis_py.security.identity import Authenticator, Credentials
from artemis_py.security.realms import open_realms
from artemis_py.server.failures import RateLimitedLog
from artemis_py.server.security import security_of
from artemis_py.server.stats import ServerStats
from artemis_py.server.user_files import UserFilesWatch
from tests.kit.documents import broker_xml

WAIT_S = 20
MODULE = "org.apache.activemq.artemis.spi.core.security.jaas.{} {} {};"
PEOPLE = "org.apache.activemq.jaas.properties.user=users org.apache.activemq.jaas.properties.role=roles"
TILLS = "org.apache.activemq.jaas.textfiledn.user=tills org.apache.activemq.jaas.textfiledn.role=roles"


class World:
    """A configuration with files of users, watched. Used on the running loop."""

    def __init__(self, folder: Path, *modules: str) -> None:
        self.folder = folder
        self.write(users="ann = a\nbob = b\n", roles="amq = ann\nview = bob,till\n", tills="till = CN=till\n")
        core = "<users-file roles-file='roles'>users</users-file>"
        if modules:
            core = '<authentication login-config="login.config"/>'
            (folder / "login.config").write_text("activemq {" + "\n".join(modules) + "};\n")
        self.config = load(broker_xml(folder, core), environ={})
        self.ended: asyncio.Queue[Set[str]] = asyncio.Queue()
        """Whose logins have changed, as the watch says."""
        self.said: list[str] = []
        self.failed: asyncio.Queue[object] = asyncio.Queue()
        """What the loop is told of."""

    @asynccontextmanager
    async def watched(self, realms: Authenticator | None = None) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.failed.put_nowait(context["exception"]))
        self.realms = open_realms(self.config) if realms is None else realms
        security = security_of(self.config, self.realms, loop, ServerStats(), RateLimitedLog(lambda _: None))
        assert security is not None
        self.security = security
        file = Path(self.config.file)
        self.watch = UserFilesWatch(loop, file, security, self.ended.put_nowait, self.said.append, patience_s=0.1)
        security.logins.on_change = self.watch.check_soon
        await self.watch.begin()
        yield
        self.watch.end()
        security.logins.stop()

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            new = self.folder / f"{name}.new"
            new.write_text(text, "latin-1")
            new.rename(self.folder / name)

    async def looks(self) -> None:
        """Has the files looked at as they are now."""
        self.watch.check_soon()
        assert self.watch._check is not None
        await self.watch._check

    async def until_ended(self, *users: str) -> None:
        assert await asyncio.wait_for(self.ended.get(), WAIT_S) == set(users)
        assert self.ended.empty()


@pytest.mark.asyncio
async def test_a_flaw_in_a_file_hides_no_change_of_another_user(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(users="ann = a\nbob = b\neve = ENC(100:00\n")
    async with world.watched():
        world.write(users="ann = a\neve = ENC(100:00\n")
        await world.until_ended("bob")
        world.write(roles="amq = ann\nview = nob")
        world.write(users="ann = other\neve = ENC(100:00\n")
        await world.until_ended("ann")


@pytest.mark.asyncio
async def test_what_is_not_in_force_changes_nobody(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.watched():
        for text in ("ann = a\nbob =\n", "", "bob = \\u12\n"):
            world.write(users=text)
            await world.looks()
        world.write(users="ann = a\nbob = b\nzoe = z\n", roles="amq = ann\nview = till\n")
        await world.until_ended("bob")


@pytest.mark.asyncio
async def test_of_a_login_config(tmp_path: Path) -> None:
    """A module without ``reload=true`` goes on with what it has read, and so do those who came in by it."""
    files = MODULE.format("PropertiesLoginModule", "sufficient", PEOPLE)
    tills = MODULE.format("TextFileCertificateLoginModule", "sufficient", TILLS + " reload=true")
    guest = MODULE.format("GuestLoginModule", "sufficient", "org.apache.activemq.jaas.guest.user=nobody")
    world = World(tmp_path, files, tills, guest)
    async with world.watched():
        world.write(users="ann = a\n")
        await world.looks()
        world.write(tills="till = CN=other\n")
        await world.until_ended("till")
        assert world.realms.authenticate(Credentials("bob", "b"))
        world.write(roles="view = nobody\n")
        await world.until_ended("till")
        world.security.logins.use(open_realms(world.config, before=world.realms))  # as a reload does
        await world.until_ended("ann", "bob", "till")


@pytest.mark.asyncio
async def test_files_that_hang_do_not_hold_up_the_start(tmp_path: Path) -> None:
    world, may_go_on = World(tmp_path), threading.Event()
    file = SimpleNamespace(path=tmp_path / "users", check=lambda: "" if may_go_on.wait(WAIT_S) else "it hangs")
    realms: Any = SimpleNamespace(files=(file,), logins=Mock(return_value=[("bob", "b")]), authenticate=Mock())
    async with world.watched(realms):
        (line,) = world.said
        assert f"not read within 0.1 s: {file.path}" in line
        realms.logins.return_value = [("bob", "other")]
        may_go_on.set()
        await world.until_ended("bob")


@pytest.mark.asyncio
@pytest.mark.parametrize("failure", [OSError("no"), RuntimeError("no")])
async def test_files_are_looked_at_again_after_a_failure(tmp_path: Path, failure: Exception) -> None:
    world, check = World(tmp_path), Mock(return_value="", side_effect=failure)
    file = SimpleNamespace(path=tmp_path / "users", check=check)
    realms: Any = SimpleNamespace(files=(file,), logins=Mock(return_value=[("bob", "b")]), authenticate=Mock())
    async with world.watched(realms):
        assert await asyncio.wait_for(world.failed.get(), WAIT_S) is failure
        check.side_effect = None
        realms.logins.return_value = [("bob", "other")]
        world.watch.check_soon()
        await world.until_ended("bob")
