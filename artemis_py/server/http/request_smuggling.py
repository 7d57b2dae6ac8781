"""Request smuggling (RFC 9112, section 11.2): a proxy or a cache in front may read a request with a doubtful end in
another way, and take a part of its body for the next request. So such a request is refused, and the connection ends.
"""

from __future__ import annotations

import re
from typing import Final

END: Final = b"\r\n\r\n"
_ODD: Final = re.compile(rb"(?P<cr>\r(?!\n|\Z))|(?P<lf>(?<!\r)\n)|(?P<nul>\0)|(?P<fold>\r\n[ \t])")
_ODDITIES: Final = {
    "cr": "a CR stands alone in the head of the request",
    "lf": "a line of the head ends with LF alone; lines end with CR and LF",
    "nul": "the head of the request has a NUL",
    "fold": "a header goes on in the next line, which HTTP has given up",
}
_VERSIONS: Final = (b"HTTP/1.1", b"HTTP/1.0")


def oddity_in(head: bytes, start: int = 0) -> str:
    """What is wrong with the lines of a head, or of its beginning, from ``start`` on; empty: nothing."""
    found = _ODD.search(head, start)
    return "" if found is None else _ODDITIES[str(found.lastgroup)]


def doubt_in(head: bytes) -> str:
    """Why it is doubtful where a request with this whole head ends, or for whom it is; empty: it is not."""
    first, *lines = head.removesuffix(END).split(b"\r\n")
    _, _, rest = first.partition(b" ")
    target, _, version = rest.rpartition(b" ")
    found: dict[bytes, list[bytes]] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        found.setdefault(name.strip().lower(), []).append(value.strip(b" \t"))
    lengths, codings = found.get(b"content-length", []), found.get(b"transfer-encoding", [])
    hosts = found.get(b"host", [])
    if version not in _VERSIONS:
        return "the version of HTTP is neither 1.1 nor 1.0"
    for shown, values in (("Content-Length", lengths), ("Transfer-Encoding", codings), ("Host", hosts)):
        if len(values) > 1:
            return f"{shown} is given {len(values)} times; send it once"
    if lengths and codings:
        return "Content-Length and Transfer-Encoding contradict each other; send one of them"
    if lengths and not lengths[0].isdigit():
        return "Content-Length is not one number"
    if codings and version == b"HTTP/1.0":
        return "HTTP/1.0 has no Transfer-Encoding; send Content-Length, or HTTP/1.1"
    _, is_absolute, rest = target.partition(b"://")
    if is_absolute and not target.startswith(b"/") and hosts:
        authority = re.split(rb"[/?]", rest, maxsplit=1)[0]
        if authority.lower() != hosts[0].lower():
            return "the target names another host than the header Host"
    return ""
