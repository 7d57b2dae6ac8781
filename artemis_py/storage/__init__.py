"""The broker's files: how they are written, recovered and kept. ``open.py`` opens them all.

Storage imports no part of the core; they meet in ``record_log.py``. A folder imports only folders before it in this
order: ``format``, ``disk``, ``bodies``, ``pages``, ``journal``, ``recovery``, ``retention``, ``replay``.
"""
