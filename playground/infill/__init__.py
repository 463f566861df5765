"""Texts with blanks: how people write them, and how JSON becomes one. Knows text, not models."""
