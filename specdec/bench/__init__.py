"""Measured figures of a pair and its drafters."""
