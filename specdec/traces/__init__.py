"""Runs as files: written, read, audited, compared, recorded."""
