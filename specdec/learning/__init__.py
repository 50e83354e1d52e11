"""Live learning: a draft model trains on what the target says of its drafts, while it drafts."""
