"""A job's result for people and machines: terminal, JSON, Parquet, HTML."""
