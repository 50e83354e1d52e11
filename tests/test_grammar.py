"""Decoding under a grammar: the expression, the state machine over tokens, and the law of the text."""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import re
from collections.abc import Callable, Iterable

import pytest
import torch
from toywords import Chunks

from specdec.drafters import NoDrafter
from specdec.engine import generate, Task
from specdec.events import Committed, Failed, Finished, Verified
from specdec.expression import compiled, DEAD, MAX_STATES
from specdec.grammar import Grammar, Guide
from specdec.proof.enumeration import output_law, paths, TooManyPaths, total_variation
from specdec.proof.grammar_mistakes import GRAMMAR_MISTAKES
from specdec.proof.toys import Case, largest_error, run_loop, TableModel
from specdec.rules import RULES
from specdec.sampling import Chooser
from specdec.types import SamplingParams

EXACT = 1e-12

# The expression. Python's own `re` is the reference.

EXPRESSIONS = (
    "", "a", "abc", "a|b", "ab|a|c", "(ab)*", "a*b*", "(a|b)*c", "a+b?", "(a*)*", "(a*b*)*c", "(|a)b", "a{2}", "a{1,}b",
    "a{0,2}b", "(ab?){1,2}", "(a|ab)(c|bcd)", "[abc]", "[^abc]", "[a-c]x?", "[^a-c\\n]+", "[]a]", "[a\\]-]+", "[a-]",
    ".", "a.c", ".*b", "\\d+", "\\D", "[\\d\\s]+", "\\w+\\W", "\\S\\s", "\\n|\\t", "\\x61\\u00e9", "\\.\\*", "é|ß",
    "[é-ü]b",
    "[^é]", "[a-ÿ]{2}", "[α-ω]+", "[一-龥]", "[^\\u0000-\\uffff]", "(a|é|中|😀)+", "[ -\\uffff]", "\\{\\}",
    "(?:a|b)c", "-?(0|[1-9][0-9]*)", "a(b(c|d)?)?", "[^\\x00-\\x7f]",
)  # fmt: skip
LETTERS = "abcdx019 -]{}.*\n\té\u00e8üß中😀αω\uffff\u0800\ud7ff\ue000\U0010ffff_"


def texts(expression: str, count: int) -> list[str]:
    rng = random.Random(expression)
    likely = [c for c in expression if c in LETTERS] or ["a"]
    short = ["", *LETTERS, *("".join(pair) for pair in itertools.product("abc", repeat=2))]
    return short + [
        "".join(rng.choice(likely if rng.random() < 0.7 else LETTERS) for _ in range(rng.randint(1, 6)))
        for _ in range(count)
    ]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_matches_what_python_matches(expression: str) -> None:
    automaton, reference = compiled(expression), re.compile(expression, re.ASCII)
    for text in texts(expression, 150):
        state = automaton.after(text.encode())
        assert (state in automaton.accepting) == bool(reference.fullmatch(text)), text


def test_a_state_is_alive_while_some_text_goes_on_from_it() -> None:
    automaton = compiled("ab(c[^\\x00-\U0010ffff]|d)")
    assert automaton.after(b"ab") != DEAD
    assert automaton.after(b"abc") == DEAD  # nothing matches the class after c
    assert automaton.after(b"ab") not in automaton.accepting and automaton.after(b"abd") in automaton.accepting


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("(a", "a bracket is not closed"), ("a)", "no bracket for it to close"), ("[a", "a bracket is not closed"),
        ("*a", "nothing to repeat"), ("a|+", "nothing to repeat"), ("a**", "a repeat is not repeated"),
        ("a*?", "a repeat is not repeated"), ("a{2", "a repeat is"), ("a{3,2}", "a repeat is"),
        ("a{,2}", "a repeat is"), ("a{9999}", "a repeat is"), ("^a", "no anchors"),
        ("a$", "no anchors"), ("(?=a)", "nothing looks around"),
        ("(?P<n>a)", "nothing looks around"), ("\\1", "no such escape"), ("\\b", "no such escape"),
        ("a\\", "before nothing"), ("\\xg0", "two or four digits"), ("\\u12", "two or four digits"),
        ("[c-a]", "no range"), ("[\\d-z]", "no range"),
        ("[^\\x00-\U0010ffff]", "matches no text"), ("(" * 60 + ")" * 60, "too deep"),
        ("(a{999}){999}", "repeats too much"), ("(a|b)*a(a|b){12}", f"more than {MAX_STATES} states"),
        ("(a?){999}", "repeats too much"), ("[a\ud800]", "half of a character"),
        ("a" * 2001, "more than 2000 characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_in_one_sentence(expression: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        compiled(expression)
    assert "\n" not in str(error.value)


# Tokens.

WORDS = Chunks(["", "a", "b", "c", "ab", "abc", "bc", "é", b"\xc3", b"\xa9", ""])


def machine(expression: str, words: Chunks = WORDS, ends: tuple[int, ...] = (0,)) -> Grammar:
    return Grammar.of(expression, words.bytes, len(words.chunks), ends)


@pytest.mark.parametrize("expression", ["a*b?c", "(ab|c)+", "é{2}", "[^a]*", "(abc|é)*", ""])
def test_a_token_is_allowed_where_some_text_goes_on_after_it(expression: str) -> None:
    """Against Python's `re` on all texts of up to four characters, along random texts in tokens."""
    whole = [
        text.encode()
        for n in range(5)
        for text in map("".join, itertools.product("abcé", repeat=n))
        if re.fullmatch(expression, text)
    ]
    grammar, rng = machine(expression), random.Random(1)
    for _ in range(20):
        state, said = grammar.start, b""
        while not grammar.is_done(state) and len(said) < 4:
            allowed = grammar.allowed(state).nonzero().flatten().tolist()
            for token, data in enumerate(WORDS.chunks):
                possible = said in whole if token == 0 else bool(data) and any(w.startswith(said + data) for w in whole)
                if len((said + data).decode(errors="ignore")) < 3:  # longer ones may go on beyond four characters
                    assert (token in allowed) == possible, (said, data)
                assert (grammar.next(state, token) != DEAD) == (token in allowed)
            token = rng.choice(allowed)
            state, said = grammar.next(state, token), said + WORDS.chunks[token]
            if token == 0:
                assert grammar.is_done(state) and not grammar.allowed(state).any()
                break


def test_no_text_runs_into_a_place_where_nothing_is_allowed() -> None:
    """Nothing spells c alone: after a, only the token `bc` leads on; after ab nothing would."""
    words = Chunks(["a", "b", "bc", "d"])
    grammar = machine("abc|d", words, ())
    after = grammar.next(grammar.start, 0)
    assert grammar.allowed(after).tolist() == [False, False, True, False]
    with pytest.raises(ValueError, match="spell no text"):
        machine("abcc", words, ())


# The law of the text. Every random path of the shipped loop, against the target's own law under the grammar.

GRAMMARS = ("(a|bc?)*", "(ab|ba)*c?", "a{2}b|b[ac]*", "[ab]*c[ab]*")
PARAMS = (SamplingParams(temperature=0.9), SamplingParams(temperature=1.3, top_k=2, top_p=0.9), SamplingParams())
CHAINS = ("model", "unmasked", "point")
DRAFTERS = (*CHAINS, "sampled", "without replacement", "top")


def error_of(case: Case, rule: str = "rejection", paths: int = 20_000) -> float:
    law, _ = output_law(run_loop(lambda: case.task(RULES[rule]())), paths)
    return largest_error(law, case.exact_law())


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_under_a_grammar_every_path_gives_the_targets_law(drafter: str) -> None:
    for seed, (expression, end) in enumerate(itertools.product(GRAMMARS, (False, True))):
        for params in PARAMS:
            assert error_of(Case(4 if end else 3, 2, 2, params, drafter, seed, end, expression)) <= EXACT, expression


@pytest.mark.parametrize("rule", ["block", "match"])
@pytest.mark.parametrize("drafter", CHAINS)
def test_under_a_grammar_every_rule_gives_the_targets_law(rule: str, drafter: str) -> None:
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
def test_under_a_grammar_longer_texts_have_the_targets_law(rule: str, drafter: str) -> None:
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


def test_the_grammar_changes_the_law_that_was_proved() -> None:
    free, bound = Case(3, 2, 3), Case(3, 2, 3, grammar=GRAMMARS[0])
    assert largest_error(free.exact_law(), bound.exact_law()) > 0.01
    assert {*bound.exact_law()} < {*free.exact_law()}


@pytest.mark.parametrize("key", GRAMMAR_MISTAKES)
def test_enumeration_catches_the_mistake(key: str) -> None:
    mistake = GRAMMAR_MISTAKES[key]
    case = Case(3, 2, 2, SamplingParams(temperature=0.7), seed=1, grammar="(ab?c)*")
    law, _ = output_law(run_loop(lambda: mistake.apply(case.task(), case.models()[1])), 20_000)
    assert total_variation(law, case.exact_law()) > 1e-3


def test_to_mask_the_target_alone_is_no_mistake() -> None:
    """The law is the same; what the grammar forbids is drafted and rejected, so fewer tokens are kept."""
    kept = {}
    for drafter in ("model", "unmasked"):
        case = Case(3, 1, 2, SamplingParams(temperature=1.0), drafter, 1, grammar="(ab?c)*")
        kept[drafter] = 0.0
        for accepted, chance in paths(functools.partial(accepted_in, case.task), 1_000):
            kept[drafter] += chance * accepted
        assert error_of(case) <= EXACT
    assert kept["unmasked"] < kept["model"] - 0.1


def accepted_in(task_of: Callable[[], Task], chooser: Chooser) -> int:
    return sum(event.accepted for event in generate(task_of(), chooser) if isinstance(event, Committed))


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


def test_the_laws_that_are_told_hold_nothing_forbidden() -> None:
    case = Case(4, 3, 12, SamplingParams(1.0, seed=5), "model", 3, grammar="(ab|ba)*")
    task = case.task()
    task.details = True
    text: list[int] = []
    grammar = case.machine()
    assert grammar is not None
    for event in generate(task):
        if isinstance(event, Verified) and event.law:
            shown = [position.target for position in event.positions[:1]] or [event.law]
            state = functools.reduce(grammar.next, text, grammar.start)
            assert {c.token for law in shown if law for c in law.top} <= {
                *grammar.allowed(state).nonzero().flatten().tolist()
            }
        if isinstance(event, Committed):
            text += event.tokens
