"""The prompts of the tables; the page has its own.

Stories and code were written for this list. The facts are of the kinds that training generates, and their
questions occur there: in a closed world they can hardly be new.
"""

PROMPTS = {
    "story": (
        "The boat had been lying in the harbour for three days when",
        "“I do not believe a word of it,” said the doctor, and",
        "It was past midnight before the two boys reached the old mill, and",
        "My aunt looked at the letter for a long time without speaking. Then",
        "In the middle of the forest there stood a little house, and in it lived",
        "The inspector closed the door behind him and walked slowly to the window.",
    ),
    "code": (
        'def parse_header(line):\n    """Split a header line into its name and value."""\n',
        "class Counter:\n    def __init__(self, start=0):\n        self.value = start\n\n    def ",
        "import os\nimport sys\n\n\ndef find_files(path, suffix):\n",
        "    try:\n        result = self._connect(host, port)\n    except ",
        "def main():\n    parser = argparse.ArgumentParser(",
        "    def __repr__(self):\n        return ",
    ),
    "facts": (
        "Q: What is the capital of Italy?\nA:",
        "Q: What is 12 plus 30?\nA:",
        "Q: Which month comes after May?\nA:",
        "Q: What is the opposite of early?\nA:",
        "Q: What is the plural of child?\nA:",
        "Q: Which planet is third from the Sun?\nA:",
    ),
}
