"""The page: one tab a file. Knows the engine and the run log; nothing below knows it."""
