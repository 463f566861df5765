"""The command line: generate, models, runs, serve, bench. Knows the engine and the run log; no page, no torch."""
