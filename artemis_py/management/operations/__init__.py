"""The operations, by what they are on: each row of the table, beside its generator."""
