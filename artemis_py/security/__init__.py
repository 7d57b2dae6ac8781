"""Users, roles and permissions: who somebody is, and what they may do."""
