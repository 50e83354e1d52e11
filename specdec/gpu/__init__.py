"""The cycle of `engine.HostExecutor` on a GPU: draft, verification and accept step are captured CUDA graphs."""
