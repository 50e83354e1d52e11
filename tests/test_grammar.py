"""Decoding under a grammar: the expression, the masks over tokens, and the distribution of the text."""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import re
import statistics
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest
import torch
from toywords import Chunks

from specdec.drafters import NoDrafter
from specdec.engine import generate, Task
from specdec.events import Committed, Failed, Finished, Verified
from specdec.grammar import check, compiled, fits, Grammar, Guide, tokenizer, Words
from specdec.proof.enumeration import output_distribution, paths, TooManyPaths, total_variation
from specdec.proof.grammar_mistakes import GRAMMAR_MISTAKES
from specdec.proof.toys import Case, largest_error, run_loop, TableModel
from specdec.rules import RULES
from specdec.sampling import Sampler
from specdec.types import check_grammar, MAX_GRAMMAR, Proposal, SamplingParams

if TYPE_CHECKING:
    from llguidance import LLMatcher

EXACT = 1e-12

# The expression. Python's own `re` is the reference.

EXPRESSIONS = (
    "", "a", "abc", "a|b", "ab|a|c", "(ab)*", "a*b*", "(a|b)*c", "a+b?", "(a*)*", "(a*b*)*c", "(|a)b", "a{2}", "a{1,}b",
    "a{0,2}b", "(ab?){1,2}", "(a|ab)(c|bcd)", "[abc]", "[^abc]", "[a-c]x?", "[^a-c\\n]+", "[]a]", "[a\\]-]+", "[a-]",
    ".", "a.c", ".*b", "\\d+", "\\D", "[\\d\\s]+", "\\w+\\W", "\\S\\s", "\\n|\\t", "\\x61\\u00e9", "\\.\\*", "é|ß",
    "[é-ü]b",
    "[^é]", "[a-ÿ]{2}", "[α-ω]+", "[一-龥]", "[^\\u0000-\\uffff]", "(a|é|中|😀)+", "[ -\\uffff]", "\\{\\}",
    "(?:a|b)c", "-?(0|[1-9][0-9]*)", "a(b(c|d)?)?", "[^\\x00-\\x7f]", "^ab*$", "a*?b", "(?P<n>a|b)c", "(?i)ab",
    "a/b|//", "a\nb", "(a?){9}", "(a|b)*a(a|b){3}", "a\\$b", "\\\\",
)  # fmt: skip
LETTERS = "abcdx019 -]{}.*\n\té\u00e8üß中😀αω\uffff\u0800\ud7ff\ue000\U0010ffff_"


# What a JSON schema became before: such expressions stand in older traces.
OLDER = r'\{"name": "([^"\\\x00-\x1f]|\\["\\/bfnrt]){0,16}", "age": -?(0|[1-9][0-9]{0,14})\}'
SHORT = ["".join(letters) for n in range(5) for letters in itertools.product("abc", repeat=n)]
BYTES = tokenizer([bytes([byte]) for byte in range(255)])


def texts(expression: str, count: int) -> list[str]:
    rng = random.Random(expression)
    likely = [c for c in expression if c in LETTERS] or ["a"]
    return [*LETTERS, *SHORT, "a/b", "a\\b", "AB", "a$b"] + [
        "".join(rng.choice(likely if rng.random() < 0.7 else LETTERS) for _ in range(rng.randint(1, 6)))
        for _ in range(count)
    ]


def is_matched(matcher: LLMatcher, text: str) -> bool:
    """As it was, after."""
    data = list(text.encode())
    count = matcher.try_consume_tokens(data)
    matched = count == len(data) and matcher.is_accepting()
    assert matcher.rollback(count) and not matcher.is_error()
    return matched


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_matches_what_python_matches(expression: str) -> None:
    matcher, reference = compiled(expression, BYTES), re.compile(expression, re.ASCII)
    for text in texts(expression, 150):
        assert is_matched(matcher, text) == bool(reference.fullmatch(text)), text


def drawn_expression(rng: random.Random, depth: int = 4) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["a", "b", "c", "[ab]", "[^a]", ".", "\\w", "(|a)"])
    one, other = drawn_expression(rng, depth - 1), drawn_expression(rng, depth - 1)
    repeat = rng.choice(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}"])
    return rng.choice([one + other, f"({one}|{other})", f"({one}){repeat}", f"(?:{one}){repeat}{other}"])


def test_drawn_expressions_match_what_python_matches() -> None:
    rng, matched = random.Random(3), 0
    for _ in range(200):
        matcher, reference = compiled(expression := drawn_expression(rng), BYTES), None
        reference = re.compile(expression, re.ASCII)
        for text in SHORT:
            matched += (fitting := bool(reference.fullmatch(text)))
            assert is_matched(matcher, text) == fitting, (expression, text)
    assert 2_000 < matched < 18_000


def test_only_what_some_text_goes_on_from_is_allowed() -> None:
    guide = Guide(Grammar.of("ab(c[^\\x00-\U0010ffff]|d)", lambda byte: bytes([byte]), 256), b"ab")
    assert allowed(guide) == [ord("d")]  # nothing matches the class after c
    guide.advance(ord("d"))
    assert guide.done


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("(a", "unclosed group"), ("a)", "unopened group"), ("[a", "unclosed character class"),
        ("*a", "missing expression"), ("a|+", "missing expression"), ("a{2", "unclosed counted repetition"),
        ("a{3,2}", "invalid repetition count"), ("a{,2}", "expects a valid decimal"), ("b^a", "lookarounds"),
        ("a$b", "lookarounds"), ("(?=a)", "look-ahead"), ("(?<!a)b", "look-behind"), ("\\1", "backreferences"),
        ("\\b", "lookarounds"), ("\\xg0", "hexadecimal"), ("\\u12", "incomplete escape"),
        ("\\q", "unrecognized escape"),
        ("[c-a]", "invalid character class range"), ("(?-u:.)", "invalid UTF-8"),
        ("[^\\x00-\U0010ffff]", "matches no text"), ("(" * 300 + ")" * 300, "nested parentheses"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_in_one_sentence(expression: str, said: str) -> None:
    check_grammar(expression)
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        compiled(expression, BYTES)
    assert str(error.value).startswith("The grammar ") and str(error.value).isprintable()
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("a\\", "ends with a backslash"), ("\\\\\\", "ends with a backslash"), ("[a\ud800]", "half of a character"),
        ("a" * (MAX_GRAMMAR + 1), f"more than {MAX_GRAMMAR} characters"),
    ],
)  # fmt: skip
def test_what_can_be_seen_at_once_is_refused_before_it_is_compiled(expression: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SamplingParams(grammar=expression)
    SamplingParams(grammar="a\\\\")


def test_a_grammar_is_tried_in_a_process_that_may_not_run_long() -> None:
    """Ours would run for minutes, and take gigabytes."""
    check("((" + "()" * 900 + "){999}){999}")
    with pytest.raises(ValueError, match="takes too long"):
        check('{"type": "integer", "multipleOf": 9999991}')
    with pytest.raises(ValueError, match="unclosed group"):
        check("(a")
    assert fits("a{3}b", "aa", complete=False) and fits("a{3}b", "aaab", complete=True)
    assert fits(OLDER, '{"name": "A\\n", "age": -7}', complete=True) and not fits(OLDER, '{"age"', complete=False)
    assert not fits("a{3}b", "ab", complete=False) and not fits("a{3}b", "aaa", complete=True)


# Tokens.

WORDS = Chunks(["", "a", "b", "c", "ab", "abc", "bc", "é", b"\xc3", b"\xa9", ""])
BYTES_TOO = Chunks([*WORDS.chunks, *(bytes([byte]) for byte in range(256)), "a"])


def machine(expression: str, words: Chunks = WORDS, ends: tuple[int, ...] = (0,)) -> Grammar:
    return Grammar.of(expression, words.bytes, len(words.chunks), ends)


def allowed(guide: Guide, *drafted: int) -> list[int] | None:
    mask = guide.allowed(drafted)
    return None if mask is None else mask.nonzero().flatten().tolist()


@pytest.mark.parametrize("words", [WORDS, BYTES_TOO], ids=["few bytes", "every byte"])
@pytest.mark.parametrize("expression", ["a*b?c", "(ab|c)+", "é{2}", "[^a]*", "(abc|é)*", ""])
def test_a_token_is_allowed_where_some_text_goes_on_after_it(expression: str, words: Chunks) -> None:
    """Against Python's `re` on all texts of up to four characters, along random texts in tokens."""
    whole = [
        text.encode()
        for n in range(5)
        for text in map("".join, itertools.product("abcé", repeat=n))
        if re.fullmatch(expression, text)
    ]
    grammar, rng, known = machine(expression, words), random.Random(1), set(b"abc\xc3\xa9")
    for _ in range(20):
        guide, said = Guide(grammar), b""
        while (ways := allowed(guide)) is not None and len(said) < 4:
            for token, data in enumerate(words.chunks):
                possible = said in whole if token == 0 else bool(data) and any(w.startswith(said + data) for w in whole)
                if len((said + data).decode(errors="ignore")) < 3 and {*data} <= known:  # longer ones may go on
                    assert (token in ways) == possible, (said, data)
            token = rng.choice([token for token in ways if {*words.chunks[token]} <= known])
            guide.advance(token)
            said += words.chunks[token]
            if token == 0:
                assert guide.done
                break


def test_no_text_runs_into_a_place_where_nothing_is_allowed() -> None:
    """Nothing spells c alone: after a, only the token `bc` leads on; after ab nothing would."""
    words = Chunks(["a", "b", "bc", "d"])
    assert allowed(Guide(machine("abc|d", words, ())), 0) == [2]
    assert allowed(Guide(machine("(a|b){40}b*d", words, ()))) == [0, 1]  # its end is far
    assert allowed(Guide(machine("d*a", words, ()))) == [0, 3]  # near, and some ways never end
    with pytest.raises(ValueError, match="spell no text"):
        machine("abcc", words, ())


def test_a_large_vocabulary_without_some_bytes_fails_where_nothing_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specdec.grammar.FEW_TOKENS", 3)
    guide, logits = Guide(machine("abcd", Chunks(["a", "b", "bc", "d"]), ())), torch.zeros(2, 4)
    guide.advance(0)
    assert allowed(guide) == [1, 2] and allowed(guide, 1) == []
    with pytest.raises(ValueError, match="the grammar allows"):
        guide.mask_target(logits, Proposal.chain([1]))
    assert guide.mask_draft(logits[:1], [1]) is None
    assert allowed(guide, 2) == [3]  # the dead end left nothing behind
    guide.advance(2)
    assert allowed(guide) == [3] and allowed(guide, 3) is None


def test_a_draft_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the masks do not fit into memory: they are found again."""
    monkeypatch.setattr("specdec.grammar.MAX_MASKS", 0)
    words, rng = BYTES_TOO, random.Random(2)
    grammar = machine("(ab|c[^a]{2,9}|é)*", words)
    guide, text = Guide(grammar), list[int]()
    for _ in range(40):
        for _ in range(5):
            draft, parents = [rng.randrange(len(words.chunks)) for _ in range(6)], [-1, 0, 0, 1, -1, 4]
            guide.mask_target(torch.zeros(7, len(words.chunks)), Proposal(tuple(draft), tuple(parents)))
        ways = allowed(guide)
        assert ways and ways == allowed(Guide(grammar, text)) == allowed(
            Guide(machine("(ab|c[^a]{2,9}|é)*", words), text)
        )
        guide.advance(token := rng.choice([way for way in ways if way]))
        text.append(token)
    assert len(grammar.masks) <= 64


SYLLABLES = ["".join(letters) for letters in itertools.product("bcdfghklmnprstvw", "aeiou", ["", "n", "r", "s"])]
SCHEMA = '{"properties": {"name": {"type": "string", "maxLength": 200}, "age": {"type": "integer"}, "more": {}}}'


def spelled(count: int) -> list[bytes]:
    """A byte-level vocabulary of words, capitals, spaces, Chinese, digits and punctuation."""
    rng, tokens = random.Random(0), dict.fromkeys(bytes([byte]) for byte in range(256))
    while len(tokens) < count:
        word = "".join(rng.choices(SYLLABLES, k=rng.randint(1, 4)))
        signs, chinese = (
            "".join(rng.choices('",:{}[] \n().=;', k=3)),
            "".join(map(chr, rng.choices(range(0x4E00, 0x9FA5), k=2))),
        )
        one = rng.choice([word, word, word, word.upper(), word.capitalize(), str(rng.randrange(1_000)), signs, chinese])
        tokens[(rng.choice(["", " "]) + one).encode()] = None
    return [*tokens]


@pytest.mark.parametrize("size", [49_152, pytest.param(256_000, marks=pytest.mark.long)])
def test_a_mask_takes_a_few_milliseconds(size: int) -> None:
    """Of the processor's time, in the middle and as a mean, along texts drawn at random."""
    words, rng, took = Words(spelled(size).__getitem__, size), random.Random(4), []
    for expression in (r"[A-Z][a-z]+( [a-z]+)*\.", "[^a]*b", "([a-z]{1,9} ){3,40}", ".{1,500}x", SCHEMA):
        guide = Guide(Grammar(expression, words))
        for _ in range(40):
            began = time.thread_time()
            mask = guide.allowed()
            took.append(time.thread_time() - began)
            if mask is None:
                break
            guide.advance(rng.choice(mask.nonzero().flatten().tolist()))
    assert len(took) > 120
    assert statistics.median(took) < 0.005 and statistics.mean(took) < 0.005


# The distribution of the text. Every random path of the shipped loop, against the target's own distribution under the
# grammar.

GRAMMARS = ("(a|bc?)*", "(ab|ba)*c?", "a{2}b|b[ac]*", "[ab]*c[ab]*")
PARAMS = (SamplingParams(temperature=0.9), SamplingParams(temperature=1.3, top_k=2, top_p=0.9), SamplingParams())
CHAINS = ("model", "unmasked", "point")
DRAFTERS = (*CHAINS, "sampled", "without replacement", "top")


def error_of(case: Case, rule: str = "rejection", paths: int = 20_000) -> float:
    distribution, _ = output_distribution(run_loop(lambda: case.task(RULES[rule]())), paths)
    return largest_error(distribution, case.exact_distribution())


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_under_a_grammar_every_path_gives_the_targets_distribution(drafter: str) -> None:
    for seed, (expression, end) in enumerate(itertools.product(GRAMMARS, (False, True))):
        for params in PARAMS:
            assert error_of(Case(4 if end else 3, 2, 2, params, drafter, seed, end, expression)) <= EXACT, expression


@pytest.mark.parametrize("rule", ["block", "match"])
@pytest.mark.parametrize("drafter", CHAINS)
def test_under_a_grammar_every_rule_gives_the_targets_distribution(rule: str, drafter: str) -> None:
    for seed, expression in enumerate(GRAMMARS[:2]):
        assert error_of(Case(3, 2, 2, PARAMS[0], drafter, seed, grammar=expression), rule) <= EXACT


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "drafter"),
    [
        (rule, drafter)
        for rule, drafter in itertools.product(("rejection", "block", "match"), DRAFTERS)
        if RULES[rule].trees or drafter in CHAINS
    ],
)
def test_under_a_grammar_longer_texts_have_the_targets_distribution(rule: str, drafter: str) -> None:
    """Those toys of the grid that have few enough paths; most have."""
    proved = tried = 0
    shapes = ((1, 2), (2, 2), (2, 3), (3, 3))
    for seed, (expression, (k, length), end) in enumerate(itertools.product(GRAMMARS, shapes, (False, True))):
        tried += 1
        for params in PARAMS:
            case = Case(4 if end else 3, k, length, params, drafter, seed, end, expression)
            with contextlib.suppress(TooManyPaths):
                assert error_of(case, rule, 200) <= EXACT, case
                proved += 1
    assert proved >= tried


def test_the_grammar_changes_the_distribution_that_was_proved() -> None:
    free, bound = Case(3, 2, 3), Case(3, 2, 3, grammar=GRAMMARS[0])
    assert largest_error(free.exact_distribution(), bound.exact_distribution()) > 0.01
    assert {*bound.exact_distribution()} < {*free.exact_distribution()}


@pytest.mark.parametrize("key", GRAMMAR_MISTAKES)
def test_enumeration_catches_the_mistake(key: str) -> None:
    mistake = GRAMMAR_MISTAKES[key]
    case = Case(3, 2, 2, SamplingParams(temperature=0.7), seed=1, grammar="(ab?c)*")
    distribution, _ = output_distribution(run_loop(lambda: mistake.apply(case.task(), case.models()[1])), 20_000)
    assert total_variation(distribution, case.exact_distribution()) > 1e-3


def test_to_mask_the_target_alone_is_no_mistake() -> None:
    """The distribution is the same; what the grammar forbids is drafted and rejected, so fewer tokens are kept."""
    kept = {}
    for drafter in ("model", "unmasked"):
        case = Case(3, 1, 2, SamplingParams(temperature=1.0), drafter, 1, grammar="(ab?c)*")
        kept[drafter] = 0.0
        for accepted, chance in paths(functools.partial(accepted_in, case.task), 1_000):
            kept[drafter] += chance * accepted
        assert error_of(case) <= EXACT
    assert kept["unmasked"] < kept["model"] - 0.1


def accepted_in(task_of: Callable[[], Task], sampler: Sampler) -> int:
    return sum(event.accepted for event in generate(task_of(), sampler) if isinstance(event, Committed))


def test_shared_noise_writes_plain_decodings_text_under_a_grammar() -> None:
    for seed in range(5):
        case = Case(3, 2, 12, SamplingParams(0.9, seed=seed), "model", seed, grammar="(a|bc?)*")
        speculative, plain = (
            written(generate(case.task(RULES["shared_noise"](), drafter))) for drafter in (None, NoDrafter())
        )
        assert speculative == plain


# The loop.


def run(expression: str, length: int = 20, end: bool = False, drafter: str = "model", **more: object) -> list[object]:
    case = Case(4, 3, length, SamplingParams(1.0, **more), drafter, 2, end, expression)  # type: ignore[arg-type]
    return list(generate(case.task()))


def written(events: Iterable[object]) -> list[int]:
    return [token for event in events if isinstance(event, Committed) for token in event.tokens]


def said(events: list[object]) -> str:
    return "".join("abcd"[token] for token in written(events))


@pytest.mark.parametrize("drafter", ["model", "point", "sampled"])
def test_a_text_ends_where_the_grammar_is_complete(drafter: str) -> None:
    for seed in range(10):
        events = run("(ab|ba){3}", drafter=drafter, seed=seed)
        assert re.fullmatch("(ab|ba){3}", said(events))
        assert isinstance(events[-1], Finished) and events[-1].reason == "end"
        assert not any(isinstance(event, Failed) for event in events)


def test_the_end_token_is_allowed_only_where_the_text_may_end() -> None:
    ended = 0
    for seed in range(30):
        events = run("(abc)*", end=True, seed=seed)  # token 3, d, ends the text
        text, last = said(events), events[-1]
        assert isinstance(last, Finished)
        assert ("abc" * 20).startswith(text.rstrip("d"))
        if last.reason == "end":
            ended += 1
            assert re.fullmatch("(abc)*d", text)
    assert ended > 5


def test_a_grammar_of_nothing_writes_nothing() -> None:
    events = run("")
    assert said(events) == "" and isinstance(events[-1], Finished) and events[-1].reason == "end"


def test_a_model_without_any_allowed_token_fails_with_a_sentence() -> None:
    class Never(TableModel):
        def logits(self, prefix: tuple[int, ...]) -> torch.Tensor:
            return super().logits(prefix).index_fill(0, torch.tensor([1]), float("-inf"))

    grammar = Grammar.of("b", lambda token: b"abc"[token : token + 1], 3)
    events = list(generate(Task(Never(3, 1), (0,), guide=Guide(grammar))))
    assert any(isinstance(e, Failed) and e.fatal and "the grammar allows" in e.reason for e in events)


def test_the_distributions_that_are_told_hold_nothing_forbidden() -> None:
    case = Case(4, 3, 12, SamplingParams(1.0, seed=5), "model", 3, grammar="(ab|ba)*")
    task = case.task()
    task.details = True
    text: list[int] = []
    grammar = case.machine()
    assert grammar is not None
    for event in generate(task):
        if isinstance(event, Verified) and event.distribution:
            shown = [position.target for position in event.positions[:1]] or [event.distribution]
            ways = allowed(Guide(grammar, text))
            assert ways and {c.token for distribution in shown if distribution for c in distribution.top} <= {*ways}
        if isinstance(event, Committed):
            text += event.tokens
