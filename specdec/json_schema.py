"""A JSON schema as a regular expression (`expression.py`), for a text to follow. Knows no tokens and no model.

What it reads: `type` (object with `properties`, array of `items`, string, integer, number, boolean, null, or a list of
types), `enum`, `const`, `anyOf`, `minLength`, `maxLength`, `minItems`, `maxItems`. Anything else that would narrow the
values is refused by its name.

Sound, not complete: every text of the expression is a value of the schema. It is written as `json.dumps` writes it,
with all properties in the schema's order, also those that are not required and never others; strings hold no \\u
escapes; numbers have at most 15 digits before the point and 15 after it, so that every reader reads the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from .types import has_half_characters, MAX_GRAMMAR, Said

MAX_TEXT, MAX_DEPTH, MAX_COUNT = 20_000, 10, 999
ANNOTATIONS = set("$schema $id $comment title description default examples deprecated readOnly writeOnly".split())
KEYWORDS: dict[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties"},  # others are never written
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength"},
    "integer": set(),
    "number": set(),
    "boolean": set(),
    "null": set(),
}
EVERY = {"type", "enum", "const", "anyOf"}.union(*KEYWORDS.values())
KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
CHARACTER = r'([^"\\\x00-\x1f]|\\["\\/bfnrt])'
INTEGER = "-?(0|[1-9][0-9]{0,14})"
SIMPLE = {
    "integer": INTEGER,
    "number": INTEGER + r"(\.[0-9]{1,15})?([eE][-+]?[0-9]{1,2})?",
    "boolean": "(true|false)",
    "null": "null",
}


def expression_of(schema: str | Mapping[str, Any]) -> str:
    """ValueError, in one sentence, for what is no schema, cannot be told as an expression, or makes one too long."""
    if isinstance(schema, str) and len(schema) > MAX_TEXT:
        raise ValueError(Said("the schema has more than {limit} characters", limit=MAX_TEXT))
    try:
        told = json.loads(schema if isinstance(schema, str) else json.dumps(schema), parse_constant=int)  # no NaN
    except (ValueError, TypeError, RecursionError):
        raise ValueError(Said("the schema is no JSON")) from None
    found = value(told, 0)
    if has_half_characters(found):
        raise ValueError(Said("the schema holds half of a character (a lone surrogate)"))
    return found


def value(schema: Any, depth: int) -> str:
    if len(found := unbounded(schema, depth)) > MAX_GRAMMAR:
        raise ValueError(Said("the schema becomes a grammar of more than {limit} characters", limit=MAX_GRAMMAR))
    return found


def unbounded(schema: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise ValueError(Said("the schema is more than {limit} levels deep", limit=MAX_DEPTH))
    if not isinstance(schema, dict):
        raise ValueError(Said("each value of the schema needs an object that tells its type"))
    given = {keyword: told for keyword, told in schema.items() if keyword not in ANNOTATIONS}
    if "const" in given or "enum" in given:
        only(given, {"type", "enum" if "enum" in given else "const"})
        return either(map(literal, listed(given)))
    if "anyOf" in given:
        only(given, {"anyOf"})
        return either(value(one, depth + 1) for one in some(given, "anyOf"))
    kinds = types(given)
    only(given, {"type"}.union(*(KEYWORDS[kind] for kind in kinds)))
    return either(of_type(kind, given, depth) for kind in kinds)


def of_type(kind: str, given: dict[str, Any], depth: int) -> str:
    if kind == "object":
        return an_object(given, depth)
    if kind == "array":
        return an_array(given, depth)
    return f'"{repeated(CHARACTER, *counts(given, "minLength", "maxLength"))}"' if kind == "string" else SIMPLE[kind]


def an_object(given: dict[str, Any], depth: int) -> str:
    properties, required = given.get("properties", {}), given.get("required", [])
    if not isinstance(properties, dict):
        unusable("properties")
    if not isinstance(required, list) or not all(isinstance(name, str) and name in properties for name in required):
        unusable("required")
    return r"\{" + ", ".join(f"{literal(name)}: {value(one, depth + 1)}" for name, one in properties.items()) + r"\}"


def an_array(given: dict[str, Any], depth: int) -> str:
    if "items" not in given:
        raise ValueError(Said("an array of the schema does not tell its “items”"))
    item, (least, most) = value(given["items"], depth + 1), counts(given, "minItems", "maxItems")
    if most == 0:
        return r"\[\]"
    more = repeated(f"(, {item})", max(0, least - 1), None if most is None else most - 1)
    several = item if most == 1 else item + more
    return rf"\[{several}\]" if least else rf"\[({several})?\]"


def types(given: dict[str, Any]) -> list[str]:
    only(given, EVERY)
    if "type" not in given:
        raise ValueError(Said("each value of the schema needs an object that tells its type"))
    kinds = [given["type"]] if isinstance(given["type"], str) else some(given, "type")
    if not all(isinstance(kind, str) and kind in KEYWORDS for kind in kinds):
        unusable("type")
    return kinds


def listed(given: dict[str, Any]) -> list[Any]:
    """The values of `enum` or `const`, each of the schema's type if it tells one."""
    keyword = "enum" if "enum" in given else "const"
    values = some(given, "enum") if keyword == "enum" else [given["const"]]
    kinds = types(given) if "type" in given else list(KINDS)
    if not all(any(is_of(kind, one) for kind in kinds) for one in values):
        unusable(keyword)
    return values


def is_of(kind: str, one: Any) -> bool:
    return isinstance(one, KINDS[kind]) and (kind == "boolean" or not isinstance(one, bool))


def some(given: dict[str, Any], keyword: str) -> list[Any]:
    if not isinstance(given[keyword], list) or not given[keyword]:
        unusable(keyword)
    return list(given[keyword])


def counts(given: dict[str, Any], low: str, high: str) -> tuple[int, int | None]:
    least, most = given.get(low, 0), given.get(high)
    for keyword, n in ((low, least), (high, most if high in given else least)):
        if type(n) is not int or not (least if keyword == high else 0) <= n <= MAX_COUNT:
            unusable(keyword)
    return least, most


def only(given: dict[str, Any], known: set[str]) -> None:
    for keyword in given:
        if keyword not in known:
            unusable(keyword)


def unusable(keyword: str) -> NoReturn:
    raise ValueError(Said("the schema’s keyword “{keyword}” cannot be used here", keyword=keyword[:40]))


def either(parts: Iterable[str]) -> str:
    found = list(dict.fromkeys(parts))
    return f"({'|'.join(found)})" if len(found) > 1 else found[0]


def repeated(part: str, least: int, most: int | None) -> str:
    return f"{part}*" if most is None and not least else f"{part}{{{least},{'' if most is None else most}}}"


def literal(told: Any) -> str:
    """Exactly this value."""
    text = json.dumps(told, ensure_ascii=False)
    return "".join("\\" + character if character in r"\.[](){}|*+?^$" else character for character in text)
