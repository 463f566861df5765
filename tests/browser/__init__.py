"""The real app, driven in a real Chromium."""
