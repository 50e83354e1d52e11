"""Measured figures: `python -m specdec.bench`."""
