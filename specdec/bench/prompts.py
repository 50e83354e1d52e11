"""Define the prompts of the benchmark. The page uses other prompts.

The stories and the code were written for this list. The facts were generated like the questions in training, but
are not the same. Of each kind, we took the first six prompts for which the target's plain greedy text does
not loop, because loops are easy to draft.
"""

import json

from ..paths import ASSETS

# Questions for chat models, by the categories of SPEED-Bench. The page uses the other half of the file.
QUESTIONS: dict[str, tuple[str, ...]] = {
    kind: tuple(halves["bench"])
    for kind, halves in json.loads((ASSETS / "questions.json").read_text(encoding="utf-8")).items()
}

PROMPTS = {
    "story": (
        (
            "The boat had been lying in the harbour for three days, and nobody knew to whom it belonged. On the"
            " fourth morning a man came down the steps with a lantern in his hand. He looked at the sails,"
            " shook his head, and"
        ),
        (
            "It was past midnight before the two boys reached the old mill. The wheel had not turned for years,"
            " and the water ran black under the bridge. “Listen,” whispered the elder, “there is somebody"
        ),
        (
            "Nobody had lived in the end house since the colonel died. The shutters were closed, and moss grew"
            " on the steps. But on Friday evening, as Tom went by with the milk, he saw a light"
        ),
        (
            "“If you please, sir,” said the boy, taking off his cap, “my mother sends you this.” It was a small"
            " parcel, tied with red string. Mr. Harding cut the string, and out fell"
        ),
        (
            "Once upon a time a mouse and a frog kept house together. The mouse swept and the frog fetched"
            " water, and on Sundays they went to church. But the frog was lazy, and"
        ),
        (
            "I had hardly sat down to breakfast when the bell rang, and my landlady showed in a lady in a grey"
            " veil. She would not take a chair. “You must come at once,” she said. “My husband"
        ),
    ),
    "code": (
        "import os\nimport sys\n\n\ndef find_files(path, suffix):\n",
        "    try:\n        result = self._connect(host, port)\n    except ",
        "    def __repr__(self):\n        return ",
        ('    def close(self):\n        """Close the connection."""\n        if self.sock is not None:\n'),
        ("def copy_tree(source, target, ignore=None):\n    names = os.listdir(source)\n    if ignore is not None:\n"),
        (
            "class Logger:\n    def __init__(self, name, level=INFO):\n        self.name = name\n"
            "        self.level = level\n        self.handlers = []\n\n"
            "    def log(self, level, message, *args):\n"
        ),
    ),
    "facts": (
        (
            "Q: Which letter comes after X?\nA: The letter after X is Y.\n\n"
            "Q: What is the past tense of feel?\nA: The past tense of feel is felt.\n\n"
            "Q: How is the number 0 written as a word?\nA: The number 0 is written zero.\n\n"
            "Q: What is 7 plus 18?\nA:"
        ),
        (
            "Q: What is 28 minus 0?\nA: 28 minus 0 is 28.\n\nQ: What is the past tense of speak?\n"
            "A: The past tense of speak is spoke.\n\nQ: Which number comes next: 26, 29, 32, 35?\n"
            "A: The next number is 38.\n\nQ: Is Saturn a planet or a star?\nA:"
        ),
        (
            "Q: What colour is coal?\nA: The colour of coal is black.\n\nQ: How many days are in January?\n"
            "A: January has 31 days.\n\nQ: Which planet is sixth from the Sun?\n"
            "A: The sixth planet from the Sun is Saturn.\n\nQ: What is 25 plus 37?\nA:"
        ),
        (
            "Q: Which letter comes after P?\nA: The letter after P is Q.\n\nQ: What is 32 minus 27?\n"
            "A: 32 minus 27 is 5.\n\nQ: What is the past tense of throw?\n"
            "A: The past tense of throw is threw.\n\nQ: What is the plural of wolf?\nA:"
        ),
        (
            "Q: What is the plural of foot?\nA: The plural of foot is feet.\n\n"
            "Q: What is a young owl called?\nA: A young owl is called a owlet.\n\nQ: What is 8 times 4?\n"
            "A: 8 times 4 is 32.\n\nQ: What is 44 minus 40?\nA:"
        ),
        (
            "Q: What colour is an emerald?\nA: The colour of an emerald is green.\n\n"
            "Q: What is the past tense of tell?\nA: The past tense of tell is told.\n\n"
            "Q: Which day comes before Saturday?\nA: The day before Saturday is Friday.\n\n"
            "Q: Which letter comes after U?\nA:"
        ),
    ),
}
