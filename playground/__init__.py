"""Unmask: a playground for text diffusion."""

__version__ = "0.1.0"
