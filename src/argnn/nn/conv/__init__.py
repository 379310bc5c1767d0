"""Convolutions, one per file."""

from argnn.nn.conv.ar_conv import ARConv

__all__ = ["ARConv"]
