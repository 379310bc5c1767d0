"""An interactive page about a learned geometry: one file that needs nothing else."""

from argnn.analysis.explorer.contents import Subject, Targets, document
from argnn.analysis.explorer.headline import Worth
from argnn.analysis.explorer.html_page import page

__all__ = ["Subject", "Targets", "Worth", "document", "page"]
