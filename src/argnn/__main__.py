"""The program: ``argnn`` or ``python -m argnn``."""

import signal
import sys


def main() -> None:
    """Import and run the command line; Ctrl-C before or after its work is no error."""
    try:
        from argnn.cli import main as run  # takes seconds

        run()
    except KeyboardInterrupt:
        sys.stderr.write("argnn: error: interrupted\n")
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python has to leave in peace


if __name__ == "__main__":  # worker processes import this module, too
    main()
