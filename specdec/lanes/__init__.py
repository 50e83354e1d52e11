"""Runs side by side: each lane in turn, each with its own clock."""
