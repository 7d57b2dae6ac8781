"""The journal while the broker runs: records, batches, segments, and the state that they add up to."""
