"""Measurements and recordings made with the engine. Knows no page."""
