"""Limit what visitors may request, by the threat model in CONTRIBUTING.md, and prepare the page that is sent."""
