"""Jobs over the tables of the log: functions of a Spark session and a source. Importing this starts no Java."""
