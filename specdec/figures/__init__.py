"""Compute figures: those measured from events, closed forms, and facts of the machine."""
