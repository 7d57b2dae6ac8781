"""``python -m bench``: artemis_py beside other brokers, measured by the same hand in the same run."""
