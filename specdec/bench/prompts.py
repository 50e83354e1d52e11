"""The prompts of the tables; the page has its own.

They were written for this list, or generated like the training's questions, and chosen by the target's plain text
alone: the first six of each kind whose greedy text does not loop. Text that loops is easy to draft, and small models
loop. The kinds of questions occur in training: in a closed world they can hardly be new.

EDITS and LOOPS are for the target that was tuned on such tasks: six each of those that its greedy text continues as
asked, of 41 short functions with a name to be changed, and of ten plans and tables.
"""

TASKS = ("edits", "loops")  # domains whose texts end where the task is done

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

EDITS = (
    (
        "# Rename path to name:\n"
        "def read_file(path):\n"
        "    with open(path) as file:\n"
        "        text = file.read()\n"
        "    if not text:\n"
        "        raise ValueError(path)\n"
        "    return text\n"
        "\n"
        "# Renamed:\n"
    ),
    (
        "# Rename message to data:\n"
        "def send(self, message):\n"
        "    if not self.connected:\n"
        "        self.connect()\n"
        "    self.sock.sendall(message)\n"
        "    self.sent += len(message)\n"
        "\n"
        "# Renamed:\n"
    ),
    (
        "# Rename user to name:\n"
        "def get_user(self, user):\n"
        "    if user not in self.users:\n"
        "        self.users[user] = User(user)\n"
        "    return self.users[user]\n"
        "\n"
        "# Renamed:\n"
    ),
    (
        "# Rename path to file:\n"
        "def get_size(self, path):\n"
        "    info = os.stat(path)\n"
        "    if info.st_size > self.limit:\n"
        "        return None\n"
        "    return info.st_size\n"
        "\n"
        "# Renamed:\n"
    ),
    (
        "# Rename path to name:\n"
        "def open_file(self, path):\n"
        "    if path not in self.files:\n"
        "        self.files[path] = open(path)\n"
        "    return self.files[path]\n"
        "\n"
        "# Renamed:\n"
    ),
    (
        "# Rename color to name:\n"
        "def get_color(self, color):\n"
        "    if color in self.colors:\n"
        "        return self.colors[color]\n"
        "    return None\n"
        "\n"
        "# Renamed:\n"
    ),
)

LOOPS = (
    (
        "Plan: open, check, close letter.txt, music.txt, winter.txt, bread.txt\n"
        "> open letter.txt\n"
        "ok\n"
        "> check letter.txt\n"
        "no errors\n"
        "> close letter.txt\n"
        "ok\n"
    ),
    (
        "Plan: read, format, test garden.py, forest.py, silver.py, copper.py\n"
        "> read garden.py\n"
        "ok\n"
        "> format garden.py\n"
        "done\n"
        "> test garden.py\n"
        "no errors\n"
    ),
    ("Plan: copy, send stone.csv, garden.csv, mill.csv, horse.csv\n> copy stone.csv\ndone\n> send stone.csv\nok\n"),
    (
        "name,size,colour\n"
        "table,12,green\n"
        "chair,7,red\n"
        "window,30,white\n"
        "bridge,88,blue\n"
        "\n"
        '{"name": "table", "size": 12, "colour": "green"}\n'
    ),
    ('path,lines\ngarden,31\nforest,7\nsilver,55\ncopper,8\niron,19\n\n{"path": "garden", "lines": 31}\n'),
    ('name,size,count\napple,3,40\nbread,9,2\nletter,1,75\npaper,6,16\n\n{"name": "apple", "size": 3, "count": 40}\n'),
)
