"""The runner: configuration, splits in parallel, results in files."""
