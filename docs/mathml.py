"""Formulas as MathML, which browsers draw by themselves: no script from elsewhere."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number


def visit_inline(writer: Any, node: nodes.math) -> None:
    """A formula within a sentence."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """A formula of its own, with its number where it has a label."""
    writer.body.append(writer.starttag(node, "div", CLASS="math formula"))
    writer.body.append(tex2mathml(node.astext(), as_block=True))
    if node.get("number"):
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})</span>')
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
