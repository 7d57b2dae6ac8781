"""Which parts of a log answer a query, and their rows."""
