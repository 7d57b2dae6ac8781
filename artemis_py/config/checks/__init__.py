"""What the XSD and a single value cannot tell."""
