"""What a streaming query adds to reading: offsets, and how much is in a batch."""
