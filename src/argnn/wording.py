"""Texts for messages: values of a file made short and safe to print, and commands to repeat."""

from collections.abc import Mapping


def printable(text: str) -> str:
    """A text without the characters that would command a terminal.

    Example:
        >>> printable("a" + chr(27) + "[31m" + chr(10) + "b")
        'a?[31m?b'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def one_line(value: object) -> str:
    """A value as text without line breaks and repeated blanks."""
    return " ".join(str(value).split())


def file_stem(name: str) -> str:
    """A name as part of a file name.

    Example:
        >>> file_stem("my graph/v1.2")
        'my_graph_v1.2'
    """
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def shortened(value: object, limit: int = 80) -> str:
    r"""A value as one short line that is safe to print in a terminal.

    Example:
        >>> shortened("a\n\x1b[31mb")
        'a ?[31mb'
    """
    try:
        text = one_line(value)
    except ValueError:
        return "a huge number"  # of more digits than Python prints
    text = printable(text[:limit])
    return text if len(text) < limit else text[:-3] + "..."


def quoted(value: object) -> str:
    """A value as Python writes it, for a message that says what was found instead.

    Example:
        >>> quoted("3"), quoted(3)
        ("'3'", '3')
    """
    try:
        return shortened(repr(value), 60)
    except ValueError:
        return "a huge number"


def without_middle(text: str, most: int) -> str:
    """A text; of a long one the beginning and the end.

    Example:
        >>> without_middle("0123456789", most=6)
        '0123 ... 89'
    """
    return text if len(text) <= most else f"{text[: most - most // 3]} ... {text[-(most // 3) :]}"


def option_words(options: Mapping[str, object]) -> list[str]:
    """Options as words of a command, without those that are None or False.

    Example:
        >>> option_words({"seed": 0, "ratio": None, "row_normalize": True, "directed": False})
        ['--seed', '0', '--row-normalize']
        >>> option_words({"drop": ["name", "town"]})
        ['--drop', 'name', '--drop', 'town']
    """
    words: list[str] = []
    for name, given in options.items():
        for value in given if isinstance(given, list) else [given]:
            if value is not None and value is not False:
                words.append(f"--{name.replace('_', '-')}")
                words += [] if value is True else [str(value)]
    return words
