"""One HTML file from a document of plain values.

Texts of the user's files are in the page only as JSON, without any character that could end the
JSON, and the script shows them as text. A policy in the page allows no other script, and no
request.
"""

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

# Files of the script in the order in which they are joined. While it is loaded, a file may use only
# those before it; inside its functions, all.
SCRIPTS = (
    "dom", "arrays", "graph", "state", "coloring", "camera", "scene", "painter_canvas",
    "painter_webgl", "marks", "map", "legend", "summary", "reliability", "selection", "detail",
    "search", "overview", "downloads", "controls", "gestures", "main",
)  # fmt: skip


def page(document: Mapping[str, Any]) -> bytes:
    """The page of a document, see :func:`~argnn.analysis.explorer.contents.document`."""
    parts = "\n".join(_part(f"js/{name}.js") for name in SCRIPTS)
    # Inside one function, so that the names of the script stay private.
    script, style = f'"use strict";\n(() => {{\n{parts}}})();\n', _part("explorer.css")
    values = {
        "POLICY": f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'",
        "TITLE": html.escape(str(document["title"])),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded_json(document),
    }
    # One pass over the template: a value that holds the name of another one stays as it is.
    pieces = _part("template.html").split("@@")
    pieces[1::2] = [values[name] for name in pieces[1::2]]
    return "".join(pieces).encode()


def embedded_json(value: Any) -> str:
    r"""JSON that cannot end the HTML element around it.

    Example:
        >>> embedded_json(["</script>"])
        '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _part(name: str) -> str:
    return files("argnn.analysis.explorer").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
