"""Engines of others in this process, an adapter a file: each tells its version and makes a writer of texts."""
