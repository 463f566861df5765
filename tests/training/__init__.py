"""Tests of how the embedded model is made."""
