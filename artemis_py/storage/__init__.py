"""The journal on disk, and the way back from it. It imports no part of the core; they meet in ``records.py``."""
