"""The schema of a graph: how it was read, as plain JSON values, to read another in the same way.

A schema is stored with a trained model, and a model may come from somebody unknown. So every value
that decides about memory or enters a computation is checked first.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Ge, Gt, Le, Len
from pydantic import Discriminator
from typing_extensions import TypedDict

from argnn.checked import Count, checked
from argnn.data.columns import LARGEST
from argnn.data.structural_features import SIDES
from argnn.errors import DataError, error_prefix

#: Increased when the meaning of a schema changes; a schema of another version is refused.
SCHEMA_VERSION = 1

Schema = Mapping[str, Any]

_Size = Annotated[int, Ge(0), Le(1_000_000)]
_Number = Annotated[float, Ge(-LARGEST), Le(LARGEST)]
_Scale = Annotated[float, Gt(0), Le(LARGEST)]
#: Seconds from 1970 to the last year of a date, and back to before the first.
_LATEST = 1e12
_MOST_TEXT_FEATURES = 10_000
_Decimal = Literal[".", ","]
_Unit = Annotated[list[str], Len(2, 2)]


class _ScaledColumn(TypedDict):
    name: str
    mean: _Number
    indicator: bool
    center: _Number
    scale: _Scale


class _NumberColumn(_ScaledColumn):
    kind: Literal["number", "boolean"]
    decimal: NotRequired[_Decimal]
    unit: NotRequired[_Unit]


class _DateColumn(_ScaledColumn):
    kind: Literal["date"]
    order: Literal["ymd", "dmy", "mdy"]
    reference: Annotated[float, Ge(-_LATEST), Le(_LATEST)]
    time: bool


class _HashedColumn(TypedDict):
    kind: Literal["hashed"]
    name: str
    size: Annotated[_Size, Ge(1)]
    different: Count


class _TextColumn(TypedDict):
    kind: Literal["text"]
    name: str
    idf: Annotated[list[_Scale], Len(1, _MOST_TEXT_FEATURES)]


class _CategoryColumn(TypedDict):
    kind: Literal["category"]
    name: str
    categories: list[str]


class _VectorColumn(TypedDict):
    kind: Literal["vector"]
    name: str
    size: _Size


class _Degrees(TypedDict):
    kind: Literal["degree"]
    sides: list[str]


class _SizedStructure(TypedDict):
    kind: Literal["onehot", "random", "laplacian"]
    size: _Size
    seed: NotRequired[Count]


class _Label(TypedDict):
    column: str | None
    classes: list[str]
    kind: NotRequired[Literal["regression", "multilabel"]]
    columns: NotRequired[list[str]]
    separator: NotRequired[str | None]
    names: NotRequired[list[str]]
    decimal: NotRequired[_Decimal]
    unit: NotRequired[_Unit]


_Column = Annotated[
    _NumberColumn | _DateColumn | _CategoryColumn | _HashedColumn | _TextColumn | _VectorColumn,
    Discriminator("kind"),
]
_Structure = Annotated[_Degrees | _SizedStructure, Discriminator("kind")]


class _Schema(TypedDict):
    directed: bool
    row_normalize: bool
    num_features: Annotated[_Size, Ge(1)]
    id: str | None
    weight: NotRequired[str | None]
    weight_decimal: NotRequired[_Decimal]
    columns: list[_Column] | None
    structure: _Structure | None
    label: _Label | None
    center: NotRequired[list[_Number] | None]
    scale: NotRequired[list[_Number] | None]


def check_schema(schema: Schema) -> None:
    """Raise unless ``schema`` could come from ``load``."""
    version = schema.get("version")
    if version != SCHEMA_VERSION:
        raise DataError(f"schema: version must be {SCHEMA_VERSION} (got {version!r})")
    with error_prefix("schema:", DataError):
        checked(dict(schema), _Schema)
    rules = [*(schema["columns"] or []), schema["structure"] or {}]
    if max(rule.get("size", 0) for rule in rules) > schema["num_features"]:
        raise DataError("schema: a rule makes more features than num_features says")
    if (schema["structure"] or {}).get("sides", SIDES[0]) not in SIDES:
        raise DataError("schema: damaged rule of 'degree' features")
