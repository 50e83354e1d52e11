"""A device for tests of what is captured."""

from fakecuda import false_cuda  # noqa: F401 -- a fixture
