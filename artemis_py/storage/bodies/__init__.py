"""Large bodies, each in a file of its own."""
