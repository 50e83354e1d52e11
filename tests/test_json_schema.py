"""A JSON schema as a grammar: what is written is JSON and a value of the schema, and what is refused is named."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.expression import Automaton, compiled, DEAD, START
from specdec.json_schema import expression_of, MAX_DEPTH, MAX_TEXT
from specdec.paths import ASSETS

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
    "required": ["name"],
    "additionalProperties": False,
}


def is_written(schema: Any, text: str) -> bool:
    automaton = compiled(expression_of(schema))
    return automaton.after(text.encode()) in automaton.accepting


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('{"name": "Ann", "age": 7, "kind": "a.b", "tags": []}', True),
        ('{"name": "é\\n😀", "age": -7, "kind": "(c)", "tags": [true, null]}', True),
        ('{"name": "Ann", "age": 0, "kind": "say \\"d\\"", "tags": [false]}', True),
        ('{"name": "", "age": 0, "kind": "a.b", "tags": []}', False),  # too short
        ('{"name": "A bit too long", "age": 0, "kind": "a.b", "tags": []}', False),
        ('{"name": "Ann", "age": 07, "kind": "a.b", "tags": []}', False),  # no JSON
        ('{"name": "Ann", "age": 0, "kind": "aXb", "tags": []}', False),  # a dot is a dot
        ('{"name": "Ann", "age": 0, "kind": "a.b", "tags": [true, null, true]}', False),
        ('{"name": "A\nn", "age": 0, "kind": "a.b", "tags": []}', False),  # a raw line break
        ('{"name": "A\\q", "age": 0, "kind": "a.b", "tags": []}', False),  # no escape
        ('{"age": 0, "name": "Ann", "kind": "a.b", "tags": []}', False),  # another order
        ('{"name": "Ann"}', False),  # what is not required is written, too
    ],
)
def test_a_person(text: str, fits: bool) -> None:
    assert is_written(PERSON, text) == is_written(json.dumps(PERSON), text) == fits


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string", "pattern": "a"}, "“pattern”"), ({"type": "integer", "minimum": 0}, "“minimum”"),
        ({"$ref": "#"}, "“$ref”"), ({"type": "array", "items": {"type": "null"}, "uniqueItems": True}, "“uniqueItems”"),
        ({"type": "object", "patternProperties": {}}, "“patternProperties”"), ({"type": "date"}, "“type”"),
        ({"type": []}, "“type”"), ({"type": ["null", 7]}, "“type”"), ({"enum": []}, "“enum”"),
        ({"type": "integer", "enum": [1, True]}, "“enum”"), ({"const": 1, "type": "string"}, "“const”"),
        ({"const": 1, "minLength": 2}, "“minLength”"), ({"anyOf": []}, "“anyOf”"),
        ({"anyOf": [{"type": "null"}], "type": "null"}, "“type”"), ({"type": "string", "maxLength": -1}, "“maxLength”"),
        ({"type": "string", "maxLength": True}, "“maxLength”"), ({"type": "string", "maxLength": 1000}, "“maxLength”"),
        ({"type": "string", "maxLength": None}, "“maxLength”"), ({"type": "string", "minLength": 2.5}, "“minLength”"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "“maxLength”"),
        ({"type": "string", "minItems": 1}, "“minItems”"),
        ({"type": "object", "required": ["a"]}, "“required”"), ({"type": "object", "properties": []}, "“properties”"),
        ({"type": "array"}, "“items”"), ({}, "tells its type"), ({"minLength": 2}, "tells its type"),
        ({"type": "array", "items": True}, "tells its type"), ("{", "no JSON"), ('{"const": NaN}', "no JSON"),
        ({"const": {1, 2}}, "no JSON"), ("[" * 5000, "no JSON"), ({"const": "\ud800"}, "half of a character"),
        ('"' + "a" * MAX_TEXT, f"more than {MAX_TEXT}"),
        ({"const": "a" * 2000}, "becomes a grammar of more than 2000 characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused_in_one_sentence_that_names_it(schema: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        expression_of(schema)
    assert "\n" not in str(error.value) and len(str(error.value)) < 120


def test_a_schema_is_not_deeper_than_a_few_levels() -> None:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(MAX_DEPTH):
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": 1}
    assert is_written(schema, "[" * MAX_DEPTH + "null" + "]" * MAX_DEPTH)
    with pytest.raises(ValueError, match="levels deep"):
        expression_of({"type": "array", "items": schema})


def test_lists_of_lists_do_not_grow_without_bound() -> None:
    """Each level writes its items twice."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(MAX_DEPTH):
        schema = {"type": "array", "items": schema}
    with pytest.raises(ValueError, match="more than 2000 characters"):
        expression_of(schema)


def test_nothing_but_annotations_is_passed_over() -> None:
    """A keyword that narrows the values and is not read would make texts that are no values."""
    draft = jsonschema.Draft202012Validator
    for keyword in {*draft.VALIDATORS} - {"type", "enum", "const", "anyOf", "properties", "required"}:
        schema = {"type": "null", keyword: draft.META_SCHEMA}
        if keyword != "additionalProperties":
            with pytest.raises(ValueError, match=re.escape(keyword)):
                expression_of(schema)


# Schemas at random, each with one of its values.

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="".join(map(chr, range(32)))), max_size=4)
ATOMS = st.one_of(
    st.tuples(st.just({"type": "null"}), st.none()),
    st.tuples(st.just({"type": "boolean"}), st.booleans()),
    st.tuples(st.just({"type": "integer"}), st.integers(-(10**15) + 1, 10**15 - 1)),
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
    return st.dictionaries(TEXT, inner, max_size=2).map(
        lambda told: (
            {"type": "object", "properties": {name: schema for name, (schema, _) in told.items()}},
            {name: one for name, (_, one) in told.items()},
        )
    )


SCHEMAS = st.recursive(ATOMS, lambda inner: arrays(inner) | objects(inner), max_leaves=4)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(SCHEMAS, st.integers(0, 2**32))
def test_what_the_automaton_writes_is_json_and_a_value_of_the_schema(told: tuple[Any, Any], seed: int) -> None:
    schema, one = told
    assert is_written(schema, json.dumps(one, ensure_ascii=False))
    automaton, dice = compiled(expression_of(schema)), random.Random(seed)
    for _ in range(3):
        jsonschema.validate(json.loads(walked(automaton, dice)), schema)


def walked(automaton: Automaton, dice: random.Random) -> bytes:
    """A text of the automaton: at random for a while, then towards its end."""
    far = distances(automaton)
    text, state = b"", START
    while state not in automaton.accepting or dice.random() < 0.7:
        ways = [byte for byte, after in enumerate(automaton.table[state]) if after != DEAD]
        if not ways:
            break
        if len(text) > 40:
            if state in automaton.accepting:
                break
            ways = [byte for byte in ways if far[automaton.table[state][byte]] < far[state]]
        odd = [byte for byte in ways if byte in b'\\"0-.e']
        byte = dice.choice(odd if odd and dice.random() < 0.3 else ways)
        text, state = text + bytes([byte]), automaton.table[state][byte]
    return text


def distances(automaton: Automaton) -> dict[int, int]:
    """Bytes from each state to an end."""
    far, wave = dict.fromkeys(automaton.accepting, 0), set(automaton.accepting)
    while wave:
        wave = {state for state, row in enumerate(automaton.table) if state not in far and wave & {*row}}
        far |= dict.fromkeys(wave, max(far.values()) + 1)
    return far


@pytest.mark.skipif(not (ASSETS / "family" / "target").is_dir(), reason="the embedded family is not there")
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 60), marks=pytest.mark.long)], ids=["few", "many"])
def test_the_embedded_models_write_values_of_the_schema(seeds: range) -> None:
    from specdec import load, race, SamplingParams, Trace
    from specdec.events import Finished

    family, complete = load(), 0
    expression = expression_of(PERSON)
    for seed in seeds:
        params = SamplingParams(0.9, max_tokens=80, seed=seed, grammar=expression)
        drafter = ("draft_model", "prompt_lookup", "eagle3:tree")[seed % 3]
        run = Trace.of(race(family, "A person: ", drafter, 4, params, details=False), "A person: ")
        for ended in (event for event in run.events if isinstance(event, Finished)):
            if ended.reason == "end":
                complete += 1
                jsonschema.validate(json.loads(ended.text), PERSON)
            else:
                assert compiled(expression).after(ended.text.encode()) != DEAD
    assert complete > len(seeds)
