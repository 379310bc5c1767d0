"""The schema of a graph: how it was read, as plain JSON values, to read another in the same way.

A schema is stored with a trained model, and a model may come from somebody unknown. So every value
that decides about memory or enters a computation is checked first.
"""

from collections.abc import Mapping
from typing import Any

from argnn.data.columns import check_rules, is_feature
from argnn.data.structural_features import check_structure
from argnn.errors import DataError

#: Increased when the meaning of a schema changes; a schema of another version is refused.
SCHEMA_VERSION = 1
_MOST_FEATURES = 1_000_000

Schema = Mapping[str, Any]

_FIELDS: Mapping[str, Any] = {
    "directed": bool,
    "row_normalize": bool,
    "num_features": int,
    "id": str | None,
    "columns": list | None,
    "structure": dict | None,
    "label": dict | None,
}


def check_schema(schema: Schema) -> None:
    """Raise unless ``schema`` could come from ``load``."""
    version = schema.get("version")
    if version != SCHEMA_VERSION:
        raise DataError(f"schema: version must be {SCHEMA_VERSION} (got {version!r})")
    for name, kinds in _FIELDS.items():
        if not isinstance(schema.get(name, ...), kinds):
            raise DataError(f"schema: {name} is missing or of the wrong type")
    width = schema["num_features"]
    if not 1 <= width <= _MOST_FEATURES:
        raise DataError(f"schema: num_features must be from 1 to {_MOST_FEATURES} (got {width})")
    check_rules(schema["columns"] or [], width)
    if schema["structure"] is not None:
        check_structure(schema["structure"], width)
    if schema["label"] is not None:
        _check_label(schema["label"])
    for name in ("center", "scale"):
        values = schema.get(name)
        if values is not None and not _is_list_of_numbers(values, width):
            raise DataError(f"schema: {name} must be a list of at most {width} numbers")


def _is_list_of_numbers(values: object, most: int) -> bool:
    if not isinstance(values, list) or not _is_list_of(values, int | float):
        return False
    return len(values) <= most and all(is_feature(value) for value in values)


def _check_label(rule: Mapping[str, Any]) -> None:
    if not _is_list_of(rule.get("classes"), str):
        raise DataError("schema: label has no list of classes")
    if not isinstance(rule.get("column"), str | None):
        raise DataError("schema: the column of the label must have a name")


def _is_list_of(values: object, kind: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)
