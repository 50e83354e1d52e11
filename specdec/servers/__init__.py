"""Run and certify other engines through their servers. Only `certificate.py` imports torch."""
