"""A JSON schema as a grammar: what is written is JSON and a value of the schema, and what is refused is named."""

from __future__ import annotations

import json
import random
import re
from typing import Any, TYPE_CHECKING

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_grammar import BYTES, is_matched

from specdec.grammar import compiled, fits, Grammar, Guide, Words
from specdec.paths import ASSETS
from specdec.types import check_grammar, MAX_DEPTH, MAX_GRAMMAR

if TYPE_CHECKING:
    from llguidance import LLMatcher

PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A person",
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "age": {"type": "integer"},
        "kind": {"enum": ["a.b", "(c)", 'say "d"']},
        "tags": {"type": "array", "items": {"type": ["boolean", "null"]}, "maxItems": 2},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


def matcher_of(schema: Any) -> LLMatcher:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    check_grammar(text)
    return compiled(text, BYTES)


def is_written(schema: Any, text: str) -> bool:
    return is_matched(matcher_of(schema), text)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "array", "items": {"$ref": "#"}}, "[[], [[]]]", "[1]"),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer", "minimum": 3, "maximum": 12}}}, "11", "13"),
        ({"type": "string", "pattern": "^(yes|no)$"}, '"yes"', '"maybe"'),
        ({"type": "string", "format": "date"}, '"2024-02-29"', '"29.2.2024"'),
        ({"allOf": [{"type": "integer"}, {"minimum": 5}]}, "5", "4"),
        ({"oneOf": [{"type": "null"}, {"type": "boolean"}]}, "null", "1"),
        ({"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}}, "[1, 2, 2]", "[2, 1]"),
        ({"type": "object", "additionalProperties": {"type": "null"}}, '{"any": null}', '{"any": 1}'),
        ({"type": "object", "x-guidance": {"whitespace_flexible": True}}, '{"a": 1}', '{"a" : 1}'),  # ours hold
        ({}, '{"a": [1.5, "x", null]}', "{a: 1}"),
    ],
)  # fmt: skip
def test_what_else_a_schema_may_say(schema: Any, good: str, bad: str) -> None:
    assert is_written(schema, good) and not is_written(schema, bad)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"not": {}}, '"not"'), ({"type": "array", "uniqueItems": True}, '"uniqueItems"'), ({"if": {}}, '"if"'),
        ({"type": "string", "pattern": "(?=a)"}, "look-ahead"), ({"type": "string", "pattern": "("}, "unclosed group"),
        ({"type": "date"}, "Invalid type: date"), ({"type": ["null", 7]}, "type must be a string"),
        ({"enum": 7}, "enum"), ({"type": "string", "maxLength": -1}, "maxLength"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "minLength (3) is greater than maxLength (2)"),
        ({"type": "object", "properties": []}, "properties must be an object"), ({"format": "poem"}, "format: poem"),
        ({"$ref": "http://127.0.0.1/a"}, "not present in a registry"), ({"$ref": "file:///etc/passwd"}, "registry"),
        ({"$ref": "#"}, "matches no text"), ({"oneOf": [{"type": "string"}, {"maxLength": 2}]}, "oneOf"),
        ("{", "not a JSON object"), ("{" * 5000, "not a JSON object"), ('{"const": NaN}', "number that is too large"),
        ('{"enum": [1e400]}', "number that is too large"), ('{"minimum": -1e400}', "number that is too large"),
        ({"const": 10**400}, "number that is too large"), ({"const": 2**53 + 1}, "number that is too large"),
        ({"const": "\ud800"}, "half of a character"), ({"\udfff": 1}, "half of a character"),
        ('{"const": "' + "a" * MAX_GRAMMAR + '"}', f"more than {MAX_GRAMMAR}"),
        ('{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", f"more than {MAX_DEPTH} levels"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused_in_one_sentence_that_names_it(schema: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        matcher_of(schema)
    assert str(error.value).isprintable() and len(str(error.value)) < 250


def test_nothing_but_annotations_is_passed_over() -> None:
    """A keyword that narrows the values and is not read would make texts that are no values."""
    draft = jsonschema.Draft202012Validator
    narrowing = {
        "not": {},
        "uniqueItems": True,
        "contains": {},
        "propertyNames": {"maxLength": 1},
        "if": {},
        "then": {},
    }
    narrowing |= {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {}, "else": {}, "contentEncoding": "base64"}
    for keyword in {*draft.VALIDATORS} & {*narrowing}:
        with pytest.raises(ValueError, match=re.escape(keyword)):
            matcher_of({keyword: narrowing[keyword]})


# Schemas at random, each with one of its values.

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
ATOMS = st.one_of(
    st.tuples(st.just({"type": "null"}), st.none()),
    st.tuples(st.just({"type": "boolean"}), st.booleans()),
    st.tuples(st.just({"type": "integer"}), st.integers(-(10**15) + 1, 10**15 - 1)),
    st.tuples(st.just({"type": "integer", "minimum": -7, "maximum": 120}), st.integers(-7, 120)),
    st.tuples(st.just({"type": "number"}), st.integers(-999, 999) | st.floats(1e-4, 1e9).map(lambda x: round(x, 6))),
    st.tuples(st.just({"type": "string", "maxLength": 4}), TEXT),
    st.tuples(st.just({"type": ["integer", "string"]}), st.integers(0, 9) | TEXT),
    st.lists(TEXT | st.integers(-99, 99) | st.none(), min_size=1, max_size=3).flatmap(
        lambda values: st.tuples(st.just({"enum": values}), st.sampled_from(values))
    ),
    TEXT.map(lambda text: ({"const": [text]}, [text])),
)


def arrays(inner: Any) -> Any:
    return st.tuples(inner, st.integers(0, 2)).map(
        lambda told: ({"type": "array", "items": told[0][0], "maxItems": 2}, [told[0][1]] * told[1])
    )


def objects(inner: Any) -> Any:
    """Half of them have all their properties required."""
    return st.tuples(st.dictionaries(TEXT, inner, max_size=2), st.booleans()).map(
        lambda told: (
            {
                "type": "object",
                "properties": {name: schema for name, (schema, _) in told[0].items()},
                "required": [*told[0]] if told[1] else [],
                "additionalProperties": False,
            },
            {name: one for name, (_, one) in told[0].items()},
        )
    )


SCHEMAS = st.recursive(ATOMS, lambda inner: arrays(inner) | objects(inner), max_leaves=4)
END = 256
LETTERS = Words(lambda byte: bytes([byte]) if byte != END else b"", END + 1)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(SCHEMAS, st.integers(0, 2**32))
def test_what_is_written_is_json_and_a_value_of_the_schema(told: tuple[Any, Any], seed: int) -> None:
    schema, one = told
    assert is_written(schema, json.dumps(one, ensure_ascii=False))
    grammar, dice = Grammar(json.dumps(schema), LETTERS, [END]), random.Random(seed)
    for _ in range(3):
        if (text := walked(Guide(grammar), dice)) is not None:
            jsonschema.validate(json.loads(text), schema)


def walked(guide: Guide, dice: random.Random) -> bytes | None:
    """A text at random, with a liking for what ends it; None if it grows too long."""
    while (allowed := guide.allowed()) is not None and guide.tokens[-1:] != (END,):
        if len(guide.tokens) > 300:
            return None
        ways = allowed.nonzero().flatten().tolist()
        odd = [way for way in ways if way == END or way in b'\\"0-.e]},']
        guide.advance(dice.choice(odd if odd and dice.random() < 0.5 else ways))
    return bytes(token for token in guide.tokens if token != END)


@pytest.mark.skipif(not (ASSETS / "family" / "target").is_dir(), reason="the embedded family is not there")
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 60), marks=pytest.mark.long)], ids=["few", "many"])
def test_the_embedded_models_write_values_of_the_schema(seeds: range) -> None:
    from specdec import load, race, SamplingParams, Trace
    from specdec.events import Finished

    family, complete, grammar = load(), 0, json.dumps(PERSON)
    for seed in seeds:
        params = SamplingParams(0.9, max_tokens=80, seed=seed, grammar=grammar)
        drafter = ("draft_model", "prompt_lookup", "eagle3:tree")[seed % 3]
        run = Trace.of(race(family, "A person: ", drafter, 4, params, details=False), "A person: ")
        for ended in (event for event in run.events if isinstance(event, Finished)):
            if ended.reason == "end":
                complete += 1
                jsonschema.validate(json.loads(ended.text), PERSON)
            else:
                assert fits(grammar, ended.text.removesuffix("\ufffd"), complete=False)
    assert complete > len(seeds)
