"""Train drafters for any target, on examples that the target writes itself."""
