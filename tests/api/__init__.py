"""The routes beside the page."""
