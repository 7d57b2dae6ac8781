"""Messages over HTTP: published with one request, taken with another, and settled with a third."""
