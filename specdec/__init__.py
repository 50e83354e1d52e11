"""Speculative decoding that can be watched: an engine that tells every decision, and a page that shows it."""

__version__ = "0.1.0"
