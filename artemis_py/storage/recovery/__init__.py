"""What a start finds: whether files are whole, what damage cost, and how it is mended."""
