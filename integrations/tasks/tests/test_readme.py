"""The program in README.md, as it stands but for the port."""

from __future__ import annotations

import asyncio
import re
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from artemis_py.testing import ArtemisBroker

README = Path(__file__).parents[1] / "README.md"


def test_the_program(artemis: ArtemisBroker) -> None:
    [program] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    cooked: list[bytes] = []

    def cook(body: bytes) -> None:
        cooked.append(body)
        space["consumer"].stop()

    space: dict[str, Any] = {"cook": cook}
    imports, _, rest = program.replace("61613", str(artemis.port)).partition("\n\n")
    exec(imports, space)
    names = "global consumer\n"
    exec(f"async def main():\n{textwrap.indent(names + rest + 'await consumer.close()', '    ')}", space)
    main: Callable[[], Awaitable[None]] = space["main"]
    asyncio.run(asyncio.wait_for(main(), 20))
    assert cooked == [b"soup"]
    assert artemis.queue("kitchen").empty
    artemis.queue("kitchen").assert_acknowledged(1)
