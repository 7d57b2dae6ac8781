"""Messages over HTTP: clients publish, take and settle them with requests."""
