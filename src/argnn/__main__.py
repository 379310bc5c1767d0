"""The program: ``argnn`` or ``python -m argnn``."""

import os
import signal
import sys


def main() -> None:
    """Import and run the command line; Ctrl-C before or after its work is no error."""
    try:
        _open_standard_streams()
        from argnn.cli import main as run  # takes seconds

        run()
    except KeyboardInterrupt:
        sys.stderr.write("argnn: error: interrupted\n")
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python has to leave in peace


def _open_standard_streams() -> None:
    """Give each standard stream that the caller has closed the null device.

    Else the next file that is opened gets its number, and what is printed goes into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


if __name__ == "__main__":  # worker processes import this module, too
    main()
