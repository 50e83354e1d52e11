"""Models by name: the embedded family, folders, and checkpoints in the layouts of the Hub."""
