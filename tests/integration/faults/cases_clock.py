"""."""
CASES = {}
