"""Models behind one protocol: what stands at the masks, given the rest. Nothing in here knows a schedule or a page."""
