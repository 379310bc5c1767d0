"""Outputs of a finished run: predictions, programs, pages and figures."""
