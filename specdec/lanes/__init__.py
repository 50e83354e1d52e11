"""Run lanes by turns, each with its own clock."""
