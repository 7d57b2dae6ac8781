"""``python -m artemis_py`` is the command ``artemis-py``: from its first line on Ctrl-C ends it with one line, even
during imports.
"""

from __future__ import annotations

import gc
import sys

from artemis_py.cli import end_at_once


def main() -> int:
    """Runs one command and returns its exit code."""
    end_at_once()
    gc.disable()  # modules leave no garbage, and looking for it would be a tenth of a broker's start
    from artemis_py.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
