"""From a request to trained models: prepare, train, score, in processes or on Ray."""
