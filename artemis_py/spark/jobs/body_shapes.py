"""Describes a body in a few words: messages that fail for the same reason often look alike.

Pure functions, for Spark's workers.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_NAMES_MAX: Final = 12
_PARSED_BYTES_MAX: Final = 1 << 20
"""Longer texts are not parsed, to keep the cost small compared with reading the body."""
_XML_ROOT: Final = re.compile(
    r"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<([A-Za-z_][\w.:-]*)", re.DOTALL
)
_MAGIC: Final = (
    (b"\x1f\x8b", "gzip"), (b"PK\x03\x04", "zip"), (b"\x89PNG", "PNG"), (b"\xff\xd8\xff", "JPEG"), (b"%PDF", "PDF"),
    (b"\x28\xb5\x2f\xfd", "zstd"), (b"Obj\x01", "Avro"), (b"PAR1", "Parquet"), (b"\xac\xed\x00\x05", "Java object"),
)  # fmt: skip


def body_shape(body: bytes | None) -> str:
    """For example ``JSON object: id, total``, ``XML order``, ``text``, ``gzip``, ``empty``, ``not stored``."""
    if body is None:
        return "not stored"
    if not body:
        return "empty"
    for magic, name in _MAGIC:
        if body.startswith(magic):
            return name
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return "binary"
    start = text.lstrip()[:1]
    if start == "<" and (found := _XML_ROOT.match(text)):
        return f"XML {found[1]}"
    if start in ("{", "[") and len(body) <= _PARSED_BYTES_MAX:
        try:
            return _json_shape(json.loads(text))
        except (ValueError, RecursionError):
            return f"text that begins with {start} and is not JSON"
    if any(ord(character) < 32 and character not in "\t\r\n" for character in text[:4096]):
        return "binary"
    return "number" if _is_number(text) else "text"


def _json_shape(value: Any) -> str:
    if isinstance(value, dict):
        return f"JSON object: {_listed(sorted(value))}" if value else "JSON object without members"
    if not value:
        return "JSON array without elements"
    kinds = sorted({_json_shape(each) if isinstance(each, dict) else type(each).__name__ for each in value[:100]})
    return f"JSON array of {_listed(kinds)}"


def _listed(names: list[str]) -> str:
    rest = len(names) - _NAMES_MAX
    return ", ".join(names[:_NAMES_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def preview(body: bytes | None, limit: int = 120) -> str:
    """The beginning of a body for people: text with its control characters made visible, else hexadecimal."""
    if body is None:
        return ""
    start = body[: limit * 4]
    try:
        text = start.decode()
    except UnicodeDecodeError as problem:
        # A character that the cut went through is no sign of something else than text.
        if problem.start < len(start) - 3 or len(start) == len(body):
            return body[: limit // 3].hex(" ") + (" …" if len(body) > limit // 3 else "")
        text = start[: problem.start].decode()
    shown = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return shown[:limit] + ("…" if len(shown) > limit or len(start) < len(body) else "")
