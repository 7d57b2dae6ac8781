"""What falls due, and the rounds that look at everything."""
