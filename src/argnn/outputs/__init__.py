"""What is made of a finished run: predictions, programs, pages, figures."""
