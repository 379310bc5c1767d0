"""Texts of somebody's file, made fit for a message."""


def printable(text: str) -> str:
    """A text without the characters that would command a terminal.

    Example:
        >>> printable("a" + chr(27) + "[31m" + chr(10) + "b")
        'a?[31m?b'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def shortened(value: object, limit: int = 80) -> str:
    r"""A value as one short line that a terminal can be trusted with.

    Example:
        >>> shortened("a\n\x1b[31mb")
        'a ?[31mb'
    """
    try:
        text = " ".join(str(value).split())
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
