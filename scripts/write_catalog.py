"""Write what `argnn models` shows and what a shell completes, after a name was added or changed.

    python scripts/write_catalog.py

The facts are those of the classes. They are kept in a file so that a command need not import
torch, which takes seconds.
"""

import json
from dataclasses import fields
from pathlib import Path

from argnn.nn import DECODERS, MODELS, PRESETS
from argnn.train import SELECTIONS, TrainConfig
from argnn.train.selection import SELECTION_NAMES

SETTINGS = Path(__file__).parent.parent / "src" / "argnn" / "settings"
CATALOG, CHOICES = SETTINGS / "models.json", SETTINGS / "choices.json"
FACTS = ("space", "citation", "search_space")


def catalog() -> str:
    """Facts about every model, as the file has them."""
    rows = [
        {"name": name, **{fact: getattr(model, fact) for fact in FACTS}}
        for name, model in MODELS.items()
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n"


def choices() -> str:
    """The names that a shell completes, as the file has them."""
    tables = {
        "tasks": list(SELECTIONS),
        "presets": list(PRESETS),
        "decoders": list(DECODERS),
        "selections": list(SELECTION_NAMES),
        "train": [field.name for field in fields(TrainConfig)],
        "options": {name: list(model.option_types()) for name, model in MODELS.items()},
    }
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(table)}" for kind, table in tables.items())
    return f"{{\n{lines}\n}}\n"


if __name__ == "__main__":
    CATALOG.write_text(catalog(), encoding="utf-8")
    CHOICES.write_text(choices(), encoding="utf-8")
