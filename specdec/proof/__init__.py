"""Prove that decoding is lossless, by enumeration, planted mistakes and statistical certificates."""

SAMPLE_SIZES = (100, 1_000, 5_000, 10_000, 20_000)  # draws of a certificate. Here, since the page imports no torch
