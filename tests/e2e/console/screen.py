"""The console in a real Chromium, as somebody sees and uses it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from tests.kit.browser import Browser
from tests.kit.process import LOOPBACK, BrokerProcess, eventually
from tests.kit.secured import USERS

WAIT_S: Final = 120.0
_SHOWN: Final = "const shown = (it) => it.offsetParent !== null || it.closest('dialog[open]');"


@dataclass
class Screen:
    """A window on the console of a broker."""

    browser: Browser
    broker: BrokerProcess
    scheme: str = "http"

    @property
    def url(self) -> str:
        """The broker's acceptor that is named as this scheme."""
        return f"{self.scheme}://{LOOPBACK}:{self.broker.ports[self.scheme]}"

    def open(self, place: str = "/") -> None:
        """Opens a page of the console anew, as in a new tab."""
        self.browser.go("about:blank")
        self.browser.go(f"{self.url}/ui/#{place}")

    def go(self, place: str) -> None:
        """Goes to another page of the console, as a link does, and waits until it is drawn."""
        self.run(
            "const before = location.href; return new Promise((drawn) => {"
            "const frame = (next) => () => requestAnimationFrame(next);"
            "addEventListener('hashchange', frame(frame(() => drawn(true))), {once: true});"
            f"location.hash = {json.dumps('#' + place)}; if (location.href === before) drawn(true)}})"
        )

    def run(self, script: str) -> Any:
        """What a piece of JavaScript returns."""
        return self.browser.run(script)

    @property
    def text(self) -> str:
        """What is to be read."""
        return str(self.run("return document.body.innerText"))

    def sees(self, *texts: str, wait_s: float = WAIT_S) -> None:
        """Waits until all of these are to be read."""
        for text in texts:
            eventually(f"the text {text!r}", lambda: self.text, lambda seen, text=text: text in seen, wait_s)  # type: ignore[misc]

    def sees_not(self, text: str) -> None:
        """Waits until this is to be read no more."""
        eventually(f"no text {text!r}", lambda: self.text, lambda seen: text not in seen, WAIT_S)

    def until(self, what: str, script: str) -> Any:
        """Waits until a piece of JavaScript returns something true."""
        return eventually(what, lambda: self.run(script), bool, WAIT_S)

    @property
    def clipped(self) -> list[str]:
        """Badges, dates, numbers and buttons that are not shown in full, and what is not inside its row."""
        return list(
            self.run(
                "const all = (what) => [...document.querySelectorAll(what)].filter((it) => it.offsetParent);"
                "const wide = all('.chip, .badge, .number, .button, time, .figure').filter((it) => "
                "it.clientWidth > 0 && getComputedStyle(it).overflowX !== 'visible' "
                "&& it.scrollWidth > it.clientWidth + 1 && !it.closest('.hidden'));"
                "const middle = (it) => it.getBoundingClientRect().y + it.getBoundingClientRect().height / 2;"
                "const high = all('.cell .chip:first-of-type, .wraps, .row-head .sort').filter((it) => "
                "it.scrollHeight > it.clientHeight + 3 || it.offsetHeight > it.closest('.row').clientHeight"
                " || Math.abs(middle(it) - middle(it.closest('.row'))) > 4);"
                "return [...wide, ...high].map((it) => it.innerText)"
            )
        )

    def press(self, name: str, within: str = "body") -> None:
        """Clicks on the button, link or row with this text."""
        what = json.dumps(f"{within} :is(button, a, summary, li)")
        find = (
            f"{_SHOWN} const found = [...document.querySelectorAll({what})]"
            f".find((it) => it.innerText.trim() === {json.dumps(name)} && shown(it) && !it.disabled);"
            "found?.click(); return found !== undefined"
        )
        self.until(f"the button {name!r}", find)

    def act(self, name: str) -> None:
        """Opens the form of an operation: its button is on the page, or in the list of all that can be done."""
        find = (
            f"const named = (it) => it.innerText.trim() === {json.dumps(name)};"
            "const found = [...document.querySelectorAll('.actions button')].find(named)"
            "?? [...document.querySelectorAll('.menu strong')].find(named)?.closest('button');"
            "if (found === undefined) document.querySelector('#all-actions')?.click();"
            "found?.click(); return found !== undefined"
        )
        self.until(f"the action {name!r}", find)
        self.until("its form", "return document.getElementById('action-run') !== null")

    def types(self, field: str, text: str) -> None:
        """Writes into a field, which is named by a selector of CSS."""
        self.until(f"the field {field}", f"return document.querySelector({json.dumps(field)}) !== null")
        self.run(
            f"const it = document.querySelector({json.dumps(field)}); it.focus(); it.value = {json.dumps(text)};"
            "it.dispatchEvent(new Event('input', {bubbles: true}))"
        )

    def rows(self, label: str) -> list[list[str]]:
        """The cells of the rows of a table that are drawn, in their order on the screen."""
        return list(
            self.run(
                f"const table = document.querySelector('[aria-label=' + JSON.stringify({json.dumps(label)}) + ']');"
                "const rows = [...(table?.querySelectorAll('.row-body:not(.waiting)') ?? [])];"
                "rows.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);"
                "return rows.map((row) => [...row.children].map((cell) => cell.innerText.trim()))"
            )
        )

    def log_in(self, user: str, password: str | None = None, *, keep: bool = False) -> None:
        """Fills in the form, with the user's password if no other is given."""
        self.types("#user", user)
        self.types("#password", USERS[user] if password is None else password)
        if keep:
            self.run("document.querySelector('[name=keep]').click()")
        self.press("Log in", "form")

    def complaints(self) -> list[str]:
        """What the browser complains of on pages of this broker. On a busy machine it tells late of the one before,
        which has gone.
        """
        found = self.browser.complaints()
        return [text for text in found if not text.startswith("http://") or text.startswith(self.url)]
