"""What stays on the disk: run folders, model folders, results."""
