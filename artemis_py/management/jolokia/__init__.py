"""The protocol of Jolokia over the beans: requests and answers in JSON."""
