"""Why the broker does not do what somebody expects: each reason with a word, its setting, and a remedy."""
