"""``argnn bench``: experiments as YAML files, their cells, where these run, and their results."""
