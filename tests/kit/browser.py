"""A real Chromium, driven over WebDriver by its own chromedriver: what a page is when it is drawn."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.kit.ports import free_port
from tests.kit.process import eventually

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--force-color-profile=srgb",
)  # fmt: skip
_PORT: Final = re.compile(r"started successfully on port (\d+)")
_CODES: Final = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}
WAIT_S: Final = 120.0


def why_no_browser() -> str | None:
    """What this machine lacks to draw a page, or None."""
    missing = [names[0] for names in (_BROWSERS, ("chromedriver",)) if not any(map(shutil.which, names))]
    return f"no {' and no '.join(missing)} (Debian: apt install chromium chromium-driver)" if missing else None


class Browser:
    """One window. Pages are files, or of a server on this machine; nothing is fetched from a network."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/session"
        program = next(filter(None, map(shutil.which, _BROWSERS)))
        options: dict[str, Any] = {
            "goog:chromeOptions": {"binary": program, "args": list(_ARGUMENTS)},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": 1000 * round(WAIT_S)},  # on a busy machine a script takes longer than 30 s
        }
        begun = self._ask("", {"capabilities": {"alwaysMatch": options}})
        self._base += f"/{begun['sessionId']}"

    def _ask(self, path: str, value: Any = None, method: str = "POST") -> Any:
        data = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{path}: {refused.read().decode(errors='replace')}") from None

    def _command(self, name: str, **parameters: Any) -> Any:
        return self._ask("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def go(self, url: str) -> None:
        """Opens a page."""
        self._ask("/url", {"url": url})

    @contextmanager
    def trusting_everybody(self) -> Iterator[None]:
        """Any certificate counts, as for a user who has accepted those of their brokers."""
        self._command("Security.setIgnoreCertificateErrors", ignore=True)
        try:
            yield
        finally:
            self._command("Security.setIgnoreCertificateErrors", ignore=False)

    def run(self, script: str) -> Any:
        """What a piece of JavaScript returns. One that a page loading anew has ended begins again."""
        while True:
            try:
                return self._ask("/execute/sync", {"script": script, "args": []})
            except AssertionError as refused:
                if "aborted by navigation" not in str(refused):
                    raise

    def size(self, width: int, height: int, scheme: str) -> None:
        """Makes the window so large; ``scheme`` is light or dark."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._command("Emulation.setDeviceMetricsOverride", **metrics)
        self._command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def keys(self, *names: str) -> None:
        """Presses keys, each a character or a name such as Enter."""
        for name in names:
            for type in ("keyDown", "keyUp"):
                shown = {"text": "\r" if name == "Enter" else name} if len(name) == 1 or name == "Enter" else {}
                code = {"windowsVirtualKeyCode": _CODES[name]} if name in _CODES else {}
                key = {"type": type, "key": name, **code, **(shown if type == "keyDown" else {})}
                self._command("Input.dispatchKeyEvent", **key)

    def complaints(self) -> list[str]:
        """What the pages have written to the console since the last time, and what the browser refused to do."""
        return [one["message"] for one in self._ask("/se/log", {"type": "browser"})]

    def picture(self, file: Path, height_max: int = 6000) -> None:
        """The whole page as a PNG, or the upper part of it."""
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, height_max), "scale": 1}
        taken = self._command("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """Ends the window."""
        self._ask("", method="DELETE")


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser that is gone in the end."""
    log = folder / "chromedriver.log"
    with log.open("wb") as output:
        driver = subprocess.Popen(["chromedriver", f"--port={free_port()}"], stdout=output, stderr=output)
    try:
        eventually("chromedriver", lambda: _PORT.search(log.read_text("utf-8")) or driver.poll() is not None, bool)
        said = _PORT.search(log.read_text("utf-8"))
        assert said is not None, log.read_text("utf-8")
        browser = Browser(int(said[1]))
        try:
            yield browser
        finally:
            browser.close()
    finally:
        driver.terminate()
        driver.wait()
