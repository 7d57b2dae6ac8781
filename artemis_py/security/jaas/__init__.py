"""login.config, the file in which Artemis names who checks users: JAAS, the part of Java that such files are for."""
