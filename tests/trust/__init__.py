"""What the report counts beside the tests that it runs: a file a kind, with `count()`, which gives its figures."""
