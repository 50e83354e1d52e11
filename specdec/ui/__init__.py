"""The page: reads events and recorded runs, draws them, and asks `session` for live ones."""
