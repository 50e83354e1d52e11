"""Places of texts at which a server is judged: its distribution there decides which mistakes can show."""

CONTEXTS = {
    "flat": "The old lighthouse keeper climbed the stairs and",  # many ways to go on: residuals are drawn from often
    "peaked": "Q: What is the capital of France?\nA:",  # whole drafts are accepted, so that the bonus is seen
    "code": "import os\nimport sys\n\ndef main(argv=None):\n",  # both in turns
}
