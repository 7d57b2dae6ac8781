"""A load generator for any STOMP broker that costs much less than the broker it measures.

It sends pre-rendered frames in large blocks over plain sockets; consumers count messages without parsing. A *scenario*
(``scenario.py``, and the modules named in ``registry.py``) is one kind of load; ``result.py`` shows what they measured.
"""
