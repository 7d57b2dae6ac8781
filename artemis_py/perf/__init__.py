"""A load generator for any STOMP broker, much cheaper than the broker it measures.

It sends frames rendered beforehand in large blocks over plain sockets; consumers count messages without parsing. A
*scenario* (``scenario.py`` and the modules named in ``registry.py``) is one kind of load; ``runner.py`` runs scenarios,
``report.py`` shows what they measured.
"""
