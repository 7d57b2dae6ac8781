"""Users and roles in files of Artemis' format: read, checked, changed, and asked at a login."""
