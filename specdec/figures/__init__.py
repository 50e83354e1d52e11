"""Compute figures from events and by closed forms, and describe the machine."""
