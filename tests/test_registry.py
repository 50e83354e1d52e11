"""The registry says what is so: of classes and names."""

from types import SimpleNamespace

import pytest

from specdec.drafters.eagle3 import Eagle3Head
from specdec.families.zoo import methods_for
from specdec.methods import ADAPTIVE, EXIT, find_method, import_class, Method, METHODS, methods_using

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@every_method
def test_its_drafter_is_a_class_that_goes_by_the_same_name(method: Method) -> None:
    assert method.drafter_class.__module__ == f"specdec.{method.drafter.rpartition('.')[0]}"
    assert method.drafter_class.name == (method.name if method.tree else method.variant_of or method.name)
    assert callable(method.drafter_class.propose)


@every_method
def test_its_kind_is_what_it_drafts_with(method: Method) -> None:
    """Menus and the page's scripts go by kind, never by a name."""
    assert (method.kind == "layers") is (method.part == EXIT)
    assert (method.kind in ("lookup", "none")) is (not method.part)
    assert (method.kind == "wrapper") is (method.name == ADAPTIVE)
    assert (method.kind in ("heads", "layers")) is ("view" in method.takes)


@every_method
def test_what_it_needs_is_told_whole(method: Method) -> None:
    assert set(method.takes) <= {"view", "part", "capacity", "around"}
    assert not method.folder or method.part_class is not None
    assert method.part != EXIT or method.takes == ("view",)
    if method.variant_of:
        assert METHODS[method.variant_of].part == method.part


def test_names_of_ones_own_are_known_by_their_kind() -> None:
    names = "eagle3:folder", "medusa:tree:folder", "adaptive", "adaptive:eagle3:tree"
    found = [find_method(name) for name in names]
    assert [m and m.name for m in found] == ["eagle3", "medusa:tree", "draft_model", "eagle3:tree"]
    assert find_method("magic") is None and find_method("") is None


def test_a_part_serves_every_method_that_names_it() -> None:
    served = {}
    for kind in {m.part for m in METHODS.values() if m.part_class and m.name != ADAPTIVE}:
        part = object.__new__(import_class(kind))
        served[kind.rpartition(".")[2]] = [m.name for m in methods_using(part)]
    assert served == {
        "LanguageModel": ["draft_model"],
        "MedusaHeads": ["medusa", "medusa:tree"],
        "Eagle3Head": ["eagle3", "eagle3:tree"],
        "QuantisedCopy": ["quantised"],
        "BlockHead": ["block"],
        "MTPHead": ["mtp"],
    }


def test_trees_are_drafted_on_a_cpu_alone() -> None:
    part = object.__new__(Eagle3Head)
    for device, offered in (("cpu", ["eagle3", "eagle3:tree"]), ("cuda", ["eagle3"])):
        assert [m.name for m in methods_for(part, SimpleNamespace(device=device))] == offered
