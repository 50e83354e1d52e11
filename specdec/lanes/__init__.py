"""Run lanes in turns, each with its own clock."""
