"""An interactive page about a learned geometry: one file that needs nothing else."""

from argnn.analysis.explorer.contents import Subject, document
from argnn.analysis.explorer.html_page import page

__all__ = ["Subject", "document", "page"]
