"""Write what `argnn models` shows, after a model was added or changed.

    python scripts/write_catalog.py

The facts are those of the classes. They are kept in a file so that the command need not import
torch, which takes seconds.
"""

import json
from pathlib import Path

from argnn.nn import MODELS

CATALOG = Path(__file__).parent.parent / "src" / "argnn" / "settings" / "models.json"
FACTS = ("space", "citation", "search_space")


def catalog() -> str:
    """Facts about every model, as the file has them."""
    rows = [
        {"name": name, **{fact: getattr(model, fact) for fact in FACTS}}
        for name, model in MODELS.items()
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    CATALOG.write_text(catalog(), encoding="utf-8")
