"""Load models by name: the embedded family, folders, and checkpoints of the Hub."""
