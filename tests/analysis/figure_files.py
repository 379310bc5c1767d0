"""What tests look for in files of figures."""

import io

import numpy as np
from PIL import Image

from argnn.analysis.figures.style import figure_bytes


def pixels(figure) -> np.ndarray:
    """The figure as an image, ``[height, width, 3]``."""
    return np.asarray(Image.open(io.BytesIO(figure_bytes(figure, "png"))).convert("RGB"))


def has_something_on_it(figure) -> bool:
    return bool(pixels(figure).std() > 5)


def words(figure) -> str:
    """Every text of the figure."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))
