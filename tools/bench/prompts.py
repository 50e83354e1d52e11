"""Prompts for the target that was tuned on such tasks: six each of those that its greedy text continues as asked.

They were chosen of 41 short functions with a name to be changed, and of ten plans and tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specdec.bench.prompts import PROMPTS
from specdec.families.zoo import Family
from specdec.methods import TUNED

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


def prompts_of(family: Family) -> Mapping[str, Sequence[str]]:
    """By domain. The target that was tuned on edits is asked for some, which the general one cannot continue."""
    return {"edits": EDITS, "loops": LOOPS, "code": PROMPTS["code"]} if family.name == TUNED else PROMPTS
