"""Each operation has a form in the console, and lines that a shell and the broker understand."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest

from artemis_py.cli.main import command_of
from artemis_py.management.operation import VIEW
from artemis_py.management.table import OPERATIONS
from tests.e2e.console.screen import Screen
from tests.kit.browser import why_no_browser

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))]
FORMS: Final = """
const press = (it) => it?.click();
const drawn = () => new Promise((done) => requestAnimationFrame(done));
const found = {};
for (const name of [...document.querySelectorAll('.stop button')].map((it) => it.innerText)) {
  press([...document.querySelectorAll('.stop button')].find((it) => it.innerText === name));
  await drawn();
  for (const it of document.querySelectorAll('dialog input[required], dialog textarea[required]')) {
    it.value = '7';
    it.dispatchEvent(new Event('input', {bubbles: true}));
  }
  await drawn();
  found[name] = {
    lines: [...document.querySelectorAll('dialog .lines code')].map((it) => it.textContent),
    isDanger: document.querySelector('dialog .danger-box') !== null,
    mayRun: !document.getElementById('action-run').disabled,
  };
  press(document.getElementById('action-close'));
  await drawn();
}
return found;
"""


def test_each_operation(screen: Screen) -> None:
    screen.open("/operations")
    screen.sees("queue pause")
    found = screen.run(f"return (async () => {{ {FORMS} }})()")
    assert set(found) == {row.command for row in OPERATIONS}
    for row in OPERATIONS:
        form = found[row.command]
        command, curl = form["lines"]
        assert form["mayRun"] or row.right == VIEW, row.id  # a look may be under way
        assert form["isDanger"] == bool(row.destroys), row.id
        assert command.startswith(f"artemis-py {row.command}"), row.id
        assert ("--yes" in command) == bool(row.destroys), row.id
        _, name, *words = shlex.split(command)
        parser = argparse.ArgumentParser(exit_on_error=False)
        command_of(name).add_arguments(parser)
        parser.parse_args(words)  # as artemis-py reads it
        words = shlex.split(curl)
        method = words[words.index("-X") + 1] if "-X" in words else "GET"
        path = unquote(urlsplit(next(word for word in words if word.startswith("http"))).path)
        assert (method, re.fullmatch(re.sub(r"{[^}]+}", "[^/]+", row.path), path) is not None) == (row.method, True)
    assert [text for text in screen.complaints() if "status of 4" not in text] == []
