"""A real Telegraf with its input jolokia2_agent reads a broker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.management.told import Told
from tests.kit.process import WAIT_S

pytestmark = pytest.mark.e2e
ROOT: Final = Path(__file__).resolve().parents[3]
EXAMPLE: Final = re.compile(r"```toml\n(.*?)```", re.DOTALL)


TELEGRAF: Final = os.environ.get("TELEGRAF") or shutil.which("telegraf")


@pytest.mark.skipif(TELEGRAF is None, reason="no telegraf: neither TELEGRAF nor on the path")
def test_the_example_of_the_documentation(told: Told, tmp_path: Path) -> None:
    telegraf = str(TELEGRAF)
    told.send("/queue/orders", "xx")
    example = EXAMPLE.findall((ROOT / "docs" / "jolokia.md").read_text("utf-8"))[0]
    text = example.replace("http://127.0.0.1:8161", told.broker.url)
    output = '[[outputs.file]]\n  files = ["stdout"]\n  data_format = "influx"\n'
    file = tmp_path / "telegraf.conf"
    file.write_text(f"[agent]\n  omit_hostname = true\n{text}\n{output}")
    own = (
        Path(telegraf).name == "telegraf"
        and b"--once" in subprocess.run([telegraf, "--help"], capture_output=True, timeout=WAIT_S, check=False).stdout
    )
    arguments = ["--config", str(file), "--once"] if own else [str(file)]
    printed = subprocess.run([telegraf, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    queue = next(line for line in lines if line.startswith("artemis_queue,") and "queue=orders" in line)
    assert "MessageCount=2" in queue
    assert "address=orders" in queue
    assert any("TotalMessageCount=2" in line for line in lines if line.startswith("artemis_broker,"))
