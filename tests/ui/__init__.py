"""The page's Python, without a browser."""
