"""The same cycle for a GPU: drafting, check and accept step as captured CUDA graphs."""
