"""Prove that decoding is lossless, by enumeration, planted mistakes and statistical certificates."""
