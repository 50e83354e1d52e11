"""Traces: runs as files, which are written, read and audited."""
