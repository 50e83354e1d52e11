"""Servers of others, watched from outside: no torch here, but in `certificate.py`."""
