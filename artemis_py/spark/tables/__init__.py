"""One module per table, which makes its rows from pieces of the log."""
