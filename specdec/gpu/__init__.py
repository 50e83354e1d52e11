"""Run cycles on a GPU: draft, verification and accept step are captured CUDA graphs."""
