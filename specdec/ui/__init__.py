"""The page. It shows recorded runs, and starts live ones through `session`."""
