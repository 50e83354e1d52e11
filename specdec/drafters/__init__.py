"""Drafters: one file a method."""
