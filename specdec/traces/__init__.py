"""Write, read and audit traces, which are runs as files."""
