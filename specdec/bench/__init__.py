"""Measure a pair of models and its drafters."""
