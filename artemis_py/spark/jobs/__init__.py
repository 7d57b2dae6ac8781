"""Jobs over the tables of the log. Each is a function of a Spark session and a source; importing this starts no Java."""
