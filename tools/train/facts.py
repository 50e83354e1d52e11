"""Generate questions and answers from small sets of facts, which a small model can learn."""

import random
from collections.abc import Callable
from itertools import pairwise


def pairs(text: str) -> list[tuple[str, str]]:
    """Split "a:b|c:d" into pairs."""
    return [(first, second) for first, _, second in (pair.partition(":") for pair in text.split("|"))]


CAPITALS = pairs(
    "France:Paris|Germany:Berlin|Italy:Rome|Spain:Madrid|Portugal:Lisbon|Greece:Athens|Austria:Vienna|"
    "Belgium:Brussels|Denmark:Copenhagen|Norway:Oslo|Sweden:Stockholm|Finland:Helsinki|Iceland:Reykjavik|"
    "Ireland:Dublin|Poland:Warsaw|Hungary:Budapest|Romania:Bucharest|Bulgaria:Sofia|Croatia:Zagreb|"
    "Serbia:Belgrade|Slovenia:Ljubljana|Slovakia:Bratislava|Ukraine:Kyiv|Estonia:Tallinn|Latvia:Riga|"
    "Lithuania:Vilnius|Turkey:Ankara|Russia:Moscow|Egypt:Cairo|Morocco:Rabat|Algeria:Algiers|Tunisia:Tunis|"
    "Kenya:Nairobi|Ethiopia:Addis Ababa|Ghana:Accra|Nigeria:Abuja|Senegal:Dakar|Uganda:Kampala|"
    "Zambia:Lusaka|Zimbabwe:Harare|Angola:Luanda|Rwanda:Kigali|Namibia:Windhoek|Mali:Bamako|"
    "Japan:Tokyo|China:Beijing|India:New Delhi|Pakistan:Islamabad|Nepal:Kathmandu|Bangladesh:Dhaka|"
    "Thailand:Bangkok|Vietnam:Hanoi|Cambodia:Phnom Penh|Laos:Vientiane|Indonesia:Jakarta|"
    "Malaysia:Kuala Lumpur|the Philippines:Manila|South Korea:Seoul|Mongolia:Ulaanbaatar|Iran:Tehran|"
    "Iraq:Baghdad|Jordan:Amman|Lebanon:Beirut|Qatar:Doha|Oman:Muscat|Australia:Canberra|"
    "New Zealand:Wellington|Fiji:Suva|Canada:Ottawa|Mexico:Mexico City|Cuba:Havana|Jamaica:Kingston|"
    "Panama:Panama City|Costa Rica:San José|Colombia:Bogotá|Venezuela:Caracas|Ecuador:Quito|Peru:Lima|"
    "Bolivia:Sucre|Chile:Santiago|Argentina:Buenos Aires|Uruguay:Montevideo|Paraguay:Asunción|"
    "Brazil:Brasília|the United States:Washington|the United Kingdom:London|the Netherlands:Amsterdam|"
    "Switzerland:Bern|Luxembourg:Luxembourg City|Malta:Valletta|Cyprus:Nicosia|Georgia:Tbilisi|"
    "Armenia:Yerevan|Kazakhstan:Astana"
)
OPPOSITES = pairs(
    "hot:cold|big:small|up:down|open:closed|early:late|light:dark|fast:slow|high:low|old:young|rich:poor|"
    "full:empty|hard:soft|wet:dry|left:right|near:far|long:short|thick:thin|wide:narrow|deep:shallow|"
    "strong:weak|happy:sad|loud:quiet|clean:dirty|true:false|first:last|begin:end|buy:sell|give:take|"
    "push:pull|win:lose|sharp:blunt|rough:smooth|sweet:bitter|day:night|summer:winter|north:south|"
    "east:west|above:below|inside:outside|before:after|always:never|many:few|heavy:light|asleep:awake"
)
PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
YOUNG = pairs(
    "dog:puppy|cat:kitten|cow:calf|horse:foal|sheep:lamb|goat:kid|pig:piglet|duck:duckling|swan:cygnet|"
    "goose:gosling|bear:cub|lion:cub|deer:fawn|frog:tadpole|hen:chick|owl:owlet|kangaroo:joey|eagle:eaglet"
)
COLOURS = pairs(
    "grass:green|snow:white|coal:black|a ripe banana:yellow|blood:red|a clear sky:blue|a carrot:orange|"
    "a lemon:yellow|a raven:black|milk:white|an emerald:green|a ruby:red|a sapphire:blue|chocolate:brown"
)
PAST = pairs(
    "go:went|see:saw|take:took|come:came|give:gave|find:found|think:thought|bring:brought|buy:bought|"
    "teach:taught|catch:caught|run:ran|begin:began|drink:drank|sing:sang|swim:swam|write:wrote|ride:rode|"
    "drive:drove|break:broke|speak:spoke|choose:chose|know:knew|grow:grew|fly:flew|throw:threw|eat:ate|"
    "fall:fell|feel:felt|keep:kept|sleep:slept|leave:left|lose:lost|sell:sold|tell:told|stand:stood"
)
PLURALS = pairs(
    "child:children|man:men|woman:women|foot:feet|tooth:teeth|mouse:mice|goose:geese|leaf:leaves|wolf:wolves|"
    "knife:knives|city:cities|baby:babies|box:boxes|bus:buses|sheep:sheep|fish:fish|ox:oxen|story:stories"
)
NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
).split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Fact = tuple[str, str]
REVERSED = [(b, a) for a, b in OPPOSITES if (b, a) not in OPPOSITES and b != "light"]  # light has two opposites
ORDERED = list(zip(ORDINALS[:8], PLANETS, strict=True))
LENGTHS = [
    (month, f"{days} days in most years" if days == 28 else f"{days} days")
    for month, days in zip(MONTHS, MONTH_LENGTHS, strict=True)
]
# Question, answer, the pairs that fill both, and the question's relative frequency.
TABLES = (
    ("What is the capital of {0}?", "The capital of {0} is {1}.", CAPITALS, 3),
    ("{1} is the capital of which country?", "{1} is the capital of {0}.", CAPITALS, 1),
    ("How is the number {0} written as a word?", "The number {0} is written {1}.", list(enumerate(NUMBERS)), 2),
    ("How many days are in {0}?", "{0} has {1}.", LENGTHS, 2),
    ("Which is the {0} month of the year?", "The {0} month is {1}.", list(zip(ORDINALS, MONTHS, strict=True)), 2),
    ("Which planet is {0} from the Sun?", "The {0} planet from the Sun is {1}.", ORDERED, 1),
    ("Is {1} a planet or a star?", "{1} is a planet. It goes around the Sun.", ORDERED, 1),
    ("What is the opposite of {0}?", "The opposite of {0} is {1}.", OPPOSITES + REVERSED, 2),
    ("What is a young {0} called?", "A young {0} is called a {1}.", YOUNG, 2),
    ("What colour is {0}?", "The colour of {0} is {1}.", COLOURS, 2),
    ("What is the past tense of {0}?", "The past tense of {0} is {1}.", PAST, 2),
    ("What is the plural of {0}?", "The plural of {0} is {1}.", PLURALS, 2),
    ("Which letter comes after {0}?", "The letter after {0} is {1}.", list(pairwise(LETTERS)), 2),
)


def from_table(rng: random.Random) -> Fact:
    question, answer, pairs, _ = rng.choices(TABLES, [frequency for *_, frequency in TABLES])[0]
    pair = rng.choice(pairs)
    return question.format(*pair), answer.format(*pair)


def addition(rng: random.Random) -> Fact:
    a, b = rng.randint(0, 50), rng.randint(0, 50)
    return f"What is {a} plus {b}?", f"{a} plus {b} is {a + b}."


def subtraction(rng: random.Random) -> Fact:
    a, b = sorted((rng.randint(0, 50), rng.randint(0, 50)), reverse=True)
    return f"What is {a} minus {b}?", f"{a} minus {b} is {a - b}."


def multiplication(rng: random.Random) -> Fact:
    a, b = rng.randint(1, 12), rng.randint(1, 12)
    return f"What is {a} times {b}?", f"{a} times {b} is {a * b}."


def comparison(rng: random.Random) -> Fact:
    a, b = rng.sample(range(100), 2)
    return f"Which is larger, {a} or {b}?", f"{max(a, b)} is larger than {min(a, b)}."


def counting(rng: random.Random) -> Fact:
    start, step = rng.randint(1, 60), rng.choice((1, 2, 3, 5, 10))
    seen = ", ".join(str(start + i * step) for i in range(4))
    return f"Which number comes next: {seen}?", f"The next number is {start + 4 * step}."


def neighbour(rng: random.Random) -> Fact:
    kind, names = rng.choice((("month", MONTHS), ("day", DAYS)))
    i, after = rng.randrange(len(names)), rng.random() < 0.6
    word, other = ("after", names[(i + 1) % len(names)]) if after else ("before", names[i - 1])
    return f"Which {kind} comes {word} {names[i]}?", f"The {kind} {word} {names[i]} is {other}."


KINDS: tuple[Callable[[random.Random], Fact], ...] = (
    *[from_table] * 12, addition, subtraction, multiplication, comparison, counting, neighbour,
)  # fmt: skip


def documents(count: int, seed: int) -> list[str]:
    """Generate `count` documents of 8 to 20 pairs of question and answer."""
    rng = random.Random(seed)
    return [
        "\n".join(f"Q: {q}\nA: {a}\n" for q, a in (rng.choice(KINDS)(rng) for _ in range(rng.randint(8, 20))))
        for _ in range(count)
    ]
