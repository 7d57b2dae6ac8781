"""A broker with small journal files, whose dead messages go to DLQ after one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.kit.process import STOMP, configuration

PERSISTENT: Final = {"persistent": "true"}
SETTINGS: Final = """\
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address>
        <max-delivery-attempts>1</max-delivery-attempts>
        <redelivery-delay>0</redelivery-delay>
      </address-setting>
      <address-setting match="ring"><default-ring-size>1</default-ring-size></address-setting>
"""
_ONLY_STOMP: Final = {"stomp": STOMP}


def configured(
    folder: Path,
    core: str = "",
    settings: str = "",
    acceptors: Mapping[str, str] = _ONLY_STOMP,
    **options: Any,
) -> Path:
    """The configuration file of a broker with everything in ``folder``; the rest is more XML, or as there."""
    core = f"""<journal-file-size>64K</journal-file-size>
    <message-expiry-scan-period>50</message-expiry-scan-period>{core}"""
    file = folder / "broker.xml"
    text = configuration(acceptors, folder=folder, core=core, settings=SETTINGS + settings, **options)
    file.write_text(text, "utf-8")
    return file
