"""What operators see of a running broker and change in it: one table of operations, for HTTP, commands and docs."""
