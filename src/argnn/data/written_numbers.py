"""Numbers as people write them: ``3,14``, ``1.234,5``, ``1 234``, ``12 %``, ``€ 5``.

A column has one decimal sign. Other signs between groups of three digits separate thousands. A unit
or currency is read only where all cells have the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

#: The signs before decimals; where both fit, the first is taken.
DECIMAL_SIGNS = (".", ",")
_LONGEST = 64
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2212": "-", "\u2019": "'"})
_CURRENCY = "€$£¥₹"
_UNIT = re.compile(
    rf"(?P<sign>[+-]?)(?P<before>[{_CURRENCY}]?) ?(?P<number>[+-]?[0-9.,][0-9 .,']*?"
    rf"(?:[eE][+-]?[0-9]+)?) ?(?P<after>|%|‰|[{_CURRENCY}]|°?[^\W\d_]{{1,6}}[²³]?)"
)
_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_CLEAR_UNIT = re.compile(rf"^[{_CURRENCY}] ?| ?[%‰{_CURRENCY}]$| [^\W\d_]{{1,6}}[²³]?$")


def _pattern(decimal: str) -> re.Pattern[str]:
    thousands = "[' ,]" if decimal == "." else "[' .]"
    grouped = rf"[1-9][0-9]{{0,2}}({thousands})[0-9]{{3}}(?:\1[0-9]{{3}})*"
    point = re.escape(decimal)
    digits = rf"(?:(?:{grouped}|[0-9]+)(?:{point}[0-9]*)?|{point}[0-9]+)"
    return re.compile(rf"[+-]?{digits}(?:[eE][+-]?[0-9]{{1,3}})?")


_PATTERNS = {sign: _pattern(sign) for sign in DECIMAL_SIGNS}


@dataclass(frozen=True)
class Writing:
    """How the numbers of a column are written.

    Attributes:
        decimal: The sign before decimals.
        unit: What stands before and after every number.
    """

    decimal: str = "."
    unit: tuple[str, str] = ("", "")

    def read(self, text: str) -> float:
        """The number in a text.

        Example:
            >>> Writing(",", ("", "kg")).read("1.234,5 kg")
            1234.5

        Raises:
            ValueError: The text is not written in this way.
        """
        number = _without_unit(text, self.unit)
        if number is None or _PATTERNS[self.decimal].fullmatch(number) is None:
            raise ValueError(text)
        other = DECIMAL_SIGNS[self.decimal == "."]
        for sign in ("'", " ", other):
            number = number.replace(sign, "")
        return float(number.replace(",", "."))


def looks_like_number(cell: object) -> bool:
    """Whether a cell is a number in any way of writing; 12A is none, unlike 12 %, 12€ and 12 kg."""
    text = _CLEAR_UNIT.sub("", _plain(str(cell)))
    return any(pattern.fullmatch(text) for pattern in _PATTERNS.values())


def are_codes(texts: Sequence[str]) -> bool:
    """Whether texts are codes: digits that may begin with a zero, or addresses of computers.

    Example:
        >>> [are_codes(texts) for texts in (["01234", "9"], ["0", "12"], ["192.168.101.202"])]
        [True, False, True]
    """
    if all(text.isascii() and text.isdecimal() for text in texts):
        return any(len(text) > 1 and text[0] == "0" for text in texts)
    return all(map(_is_address, texts))


def _is_address(text: str) -> bool:
    """Whether a text has four groups of digits up to 255; 1.234.567.890 is a number."""
    return _ADDRESS.fullmatch(text) is not None and max(map(int, text.split("."))) <= 255


def ways_of_writing(texts: Sequence[str]) -> list[Writing]:
    """The ways of writing that fit all texts; several only if they give different numbers.

    Example:
        >>> [way.decimal for way in ways_of_writing(["1,234", "12"])]
        ['.', ',']
        >>> [way.decimal for way in ways_of_writing(["1,234", "0,5"])]
        [',']
    """
    found = _UNIT.fullmatch(_plain(texts[0])) if texts else None
    if found is None or are_codes(texts):
        return []
    unit = found["before"], found["after"]
    numbers = [_without_unit(text, unit) for text in texts]
    fitting = [
        Writing(sign, unit)
        for sign in DECIMAL_SIGNS
        if all(number and _PATTERNS[sign].fullmatch(number) for number in numbers)
    ]
    if len(fitting) == 2 and all(map(_is_one_number, texts)):
        return fitting[:1]
    return fitting


def _is_one_number(text: str) -> bool:
    """Whether a text without decimals and thousands means the same in every way of writing."""
    return "." not in text and "," not in text


def _plain(text: str) -> str:
    return text.translate(_SPACES) if len(text) <= _LONGEST else ""


def _without_unit(text: str, unit: tuple[str, str]) -> str | None:
    """The number of a text with this unit; None if there is another."""
    if unit == ("", ""):
        return _plain(text)
    found = _UNIT.fullmatch(_plain(text))
    if found is None or (found["before"], found["after"]) != unit:
        return None
    return found["sign"] + found["number"]
