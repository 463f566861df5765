"""HTTP routes beside the page. Knows the engine, no components."""
