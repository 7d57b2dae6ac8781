"""Page files, and what the journal's records say about pages."""
