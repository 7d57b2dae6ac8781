"""Puts pip into the virtual environment whose Python runs this file; for machines that have neither ensurepip nor pip.

Asks the package index (``PIP_INDEX_URL``, else the public one) for the newest release of pip, checks the digest the
index gives, and lets that wheel install itself. Standard library only. Refuses to run outside a virtual environment.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

DEFAULT_INDEX = "https://pypi.org/simple"
LINK = re.compile(
    r'<a\s[^>]*href="(?P<href>[^"]+)"(?P<rest>[^>]*)>\s*'
    r"(?P<file>pip-(?P<version>\d+(?:\.\d+)*)-py3-none-any\.whl)\s*</a>"
)


def newest_wheel(page: str, page_url: str) -> tuple[str, str, str]:
    """Returns (URL, file name, SHA-256) of the newest final wheel on an index page; raises LookupError when none."""
    found: list[tuple[tuple[int, ...], str, str, str]] = []
    for link in LINK.finditer(page):
        url = urllib.parse.urljoin(page_url, html.unescape(link["href"]))
        digest = re.search(r"#sha256=([0-9a-f]{64})$", url)
        if digest is None or "data-yanked" in link["rest"]:
            continue
        version = tuple(int(part) for part in link["version"].split("."))
        found.append((version, url.partition("#")[0], link["file"], digest[1]))
    if not found:
        raise LookupError(f"no wheel of pip on {page_url}")
    return max(found)[1:]


def main() -> int:
    """Downloads and installs pip; returns the exit code of the installation."""
    if sys.prefix == sys.base_prefix:
        print("bootstrap_pip: not a virtual environment", file=sys.stderr)
        return 2
    page_url = os.environ.get("PIP_INDEX_URL", DEFAULT_INDEX).rstrip("/") + "/pip/"
    with urllib.request.urlopen(page_url, timeout=30) as answer:
        url, file_name, sha256 = newest_wheel(answer.read().decode(), page_url)
    with urllib.request.urlopen(url, timeout=60) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        print(f"bootstrap_pip: {url} does not have the digest the index gives", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / file_name
        wheel.write_bytes(content)
        command = [sys.executable, f"{wheel}/pip", "install", "--quiet", "--no-index", str(wheel)]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
