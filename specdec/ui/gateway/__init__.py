"""Limit what visitors may request, by the threat model in CONTRIBUTING.md, and send the page."""
