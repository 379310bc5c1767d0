"""``argnn tune``: search a model's settings by validation score, and keep what was chosen."""
