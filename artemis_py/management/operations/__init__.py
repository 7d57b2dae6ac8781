"""The operations, one file for each thing: its fields in lists, and the rows of the table beside their works."""
