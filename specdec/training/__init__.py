"""Drafters for any target: examples that it writes itself, and what learns from them."""
