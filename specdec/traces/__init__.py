"""Runs as files: written, read, audited, recorded."""
