"""One module per format; each gives tables or arrays and knows nothing of features."""
