"""The drafters, with one file for each method."""
