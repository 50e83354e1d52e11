"""Small mistakes in the reading path: does its test suite notice each? `python -m tools.mutants`, counted."""

from tools.mutants import count as count
