"""Settings: what a run needs to know, settled once and complete."""
