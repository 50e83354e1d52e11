"""Drafters for any target: lessons that it writes itself, and what learns from them."""
