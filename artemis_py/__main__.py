"""``python -m artemis_py`` is the command ``artemis-py``."""

from __future__ import annotations

import sys

from artemis_py.cli.start import main

sys.exit(main())
