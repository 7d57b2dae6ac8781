"""What happens in the broker, told to those who listen: on an address, and as responses of HTTP that do not end."""
