"""``artemis-py data``: takes the messages of a broker out to a file of JSON lines, and brings them into another."""
