"""What the numbers mean: measured figures, the closed forms, and the machine they were taken on."""
