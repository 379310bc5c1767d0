"""``python -m argnn``."""

from argnn.cli import main

if __name__ == "__main__":  # worker processes import this module, too
    main()
