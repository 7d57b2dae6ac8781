"""The journal on disk, and recovery from it. It imports no part of the core; they meet in ``records.py``."""
