"""One module for each table: from pieces of the log to its rows."""
