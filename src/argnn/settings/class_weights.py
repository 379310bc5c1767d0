"""Class weights as a user writes them on the command line."""

from pathlib import Path

from argnn.checked import checked
from argnn.errors import ConfigError, error_prefix
from argnn.yaml_files import parsed_yaml, yaml_content

_OPTION = "--class-weight"


def parsed_class_weight(text: str) -> str | dict[str, float]:
    """``"balanced"``, or weights from ``fraud=30,ok=1``, a YAML mapping, or a YAML or JSON file.

    Example:
        >>> parsed_class_weight("fraud=30,ok=1")
        {'fraud': 30.0, 'ok': 1.0}
    """
    if text == "balanced":
        return text
    inline, path = text.lstrip().startswith("{"), Path(text)
    if not inline and "=" in text and not path.is_file():
        return _pairs(text)
    if not inline and not path.is_file():
        raise ConfigError(
            f"{_OPTION} must be balanced, class=weight,..., or a file (got '{text:.80}')"
        )
    origin = f"{_OPTION} {text:.80}"
    document = parsed_yaml(text if inline else yaml_content(path), origin)
    if isinstance(document, dict):  # classes may be numbers
        document = {str(name): weight for name, weight in document.items()}
    with error_prefix(f"{origin}:"):
        return checked(document, dict[str, float])


def _pairs(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, weight = part.rpartition("=")
        try:
            weights[name.strip()] = float(weight)
        except ValueError as error:
            raise ConfigError(f"{_OPTION}: '{part:.80}' must read class=weight") from error
    return weights
