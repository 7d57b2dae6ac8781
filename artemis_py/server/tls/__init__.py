"""TLS: from an acceptor's parameters to encrypted connections."""
