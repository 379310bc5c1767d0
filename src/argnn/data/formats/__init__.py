"""One module per file format; each returns tables or arrays."""
