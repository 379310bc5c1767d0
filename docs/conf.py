"""How the site is built: ``make docs``, or ``sphinx-build -W -n docs build/site``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from argnn.version import __version__

project = "argnn"
author = "The argnn developers"
project_copyright = author
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "command_reference",
    "mathml",
]
html_theme = "furo"
html_title = f"argnn {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
strip_signature_backslash = True  # else attributes lose the underscore at their end
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Class attributes", "Attributes")]

# Types of other packages, and bases and parts of ours that are no names for users.
nitpick_ignore_regex = [
    ("py:class", r"(abc|collections|numpy|np|pathlib|sklearn|torch|torch_geometric|typing)\..*"),
    ("py:class", r"DataFrame"),  # of pandas
    ("py:class", r"dict\[.*"),  # a default of napoleon's that is no name
    ("py:class", r"argnn\.kernels\.neighborhood\.(Traced)?Neighborhood"),
    ("py:class", r"argnn\.(estimators\.base\.GraphEstimator|train\.loop\.Graph)"),
    ("py:class", r"argnn\.estimators\.(node_estimator\.NodeEstimator|new_nodes\.Context)"),
    ("py:class", r"argnn\.(train\.scores\.ClassScores|functional\.graph_part\.Place)"),
    ("py:class", r"argnn\.train\.tasks\.NodeTask"),
    ("py:class", r"argnn\.data\.(adjacency\.(Adjacency|Rows)|graph_store\.header\.Header)"),
    ("py:class", r"argnn\.nn\.(models\.stack\.AbstractStack|conv\.message_forms\.MessageForm)"),
    ("py:meth", r"Neighborhood\.edge_weight"),
    ("py:data", r"CURVATURE_METHODS"),
    ("py:attr", r"best_epoch"),
    ("py:class", r"(matplotlib\.figure\.)?Figure"),
]
