"""Texts of somebody's file, made fit for a message."""


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
    text = "".join(c if c.isprintable() else "?" for c in text[:limit])
    return text if len(text) < limit else text[:-3] + "..."
