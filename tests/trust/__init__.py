"""Figures for "nothing breaks it": one file a kind. Each has `count(long)`, which counts and returns its figures."""
