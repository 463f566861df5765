"""Tests of `playground.sampling`, against plain statements of its formulas."""
