"""How long work tells how far it is."""

from collections.abc import Callable

#: Is told how much is done, of how much in all (0: that is not known), and what comes next.
Tell = Callable[[int, int, str], None]
#: The same without words.
TellCount = Callable[[int, int], None]


def be_silent(done: int, total: int, text: str) -> None:
    """Tell nobody."""
