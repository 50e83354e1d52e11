"""A family in the form that other engines read: a file an engine."""
