"""Drafting with another tokenizer: exact on every random path, whatever the two vocabularies share."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import decoders, models, normalizers, Tokenizer
from torch import Tensor
from toywords import Chunks, embedded_target_into, foreign, shortened_draft_into

from specdec import cli as terminal
from specdec.drafters import ForeignModel, UniversalDrafter
from specdec.drafters.universal import continued, cuts, Rewritten, Words
from specdec.engine import check_proposal, DraftError, generate, Task
from specdec.events import Committed, Drafted, Failed, Finished, from_dict, to_dict
from specdec.families import zoo
from specdec.lanes.race import race
from specdec.proof.enumeration import output_distribution
from specdec.proof.toys import Case, cycle_distribution, largest_error, PARAMS, run_loop, TableModel
from specdec.rules import RULES
from specdec.sampling import probabilities, RandomSampler, Sampler
from specdec.text import Pieces
from specdec.types import Proposal, SamplingParams

WARM = SamplingParams(temperature=0.9)
EXACT = 1e-12
# The target's chunks and the draft model's; "-" is a control token.
VOCABULARIES = {
    "the same in another order": ("a b c", "c a b"),
    "others of the draft's": ("a b", "b ab a ba"),
    "others of the target's": ("a b ab", "b a"),
    "control tokens": ("a - b", "- b a"),
    "nothing shared": ("aa bb ab", "a b"),
    "nothing that can be said": ("a b", "x -"),
}


def drafted_by(part: ForeignModel, length: int = 3, k: int = 2, params: SamplingParams = WARM) -> Case:
    return Case(part.vocabulary, k, length, params, seed=3)


@pytest.mark.parametrize("params", PARAMS, ids=lambda p: f"T{p.temperature}-k{p.top_k}-p{p.top_p}")
@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=VOCABULARIES)
def test_every_random_path_gives_the_targets_distribution(words: tuple[str, str], params: SamplingParams) -> None:
    part = foreign(*words)
    case = drafted_by(part, params=params)
    distribution, _ = output_distribution(run_loop(lambda: case.task(drafter=UniversalDrafter(part))))
    assert largest_error(distribution, case.exact_distribution()) <= EXACT


@pytest.mark.parametrize("rule", [key for key, rule in RULES.items() if rule.lossless and key != "shared_noise"])
@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=VOCABULARIES)
def test_one_cycle_under_every_rule(words: tuple[str, str], rule: str) -> None:
    part = foreign(*words)
    case = drafted_by(part, length=4, k=3)
    distribution, paths = cycle_distribution(case, RULES[rule](), lambda: UniversalDrafter(part))
    assert largest_error(distribution, case.exact_distribution()) <= EXACT
    assert (paths > 3) == bool(part.own_of)


def test_half_characters_are_waited_for_and_drafted() -> None:
    """é is two tokens to the target; the draft model has it whole, and its two bytes."""
    target, own = Chunks([b"\xc3", b"\xa9", "a"]), Chunks(["a", "é", b"\xa9", b"\xc3"])
    part = ForeignModel(TableModel(4, seed=4), own, target, 3)
    drafter = UniversalDrafter(part)
    assert not drafter.propose([2, 0], 2, WARM, RandomSampler(0)).tokens  # after half of é
    assert drafter.propose([2, 0, 1], 2, WARM, RandomSampler(0)).tokens
    assert drafter._cached[:2] == [0, 1]  # "a", "é"
    for params in (WARM, SamplingParams()):
        case = drafted_by(part, params=params)
        distribution, _ = output_distribution(run_loop(lambda case=case: case.task(drafter=UniversalDrafter(part))))  # type: ignore[misc]
        assert largest_error(distribution, case.exact_distribution()) <= EXACT


class Silent(TableModel):
    """After texts of even length it has no chance for the tokens 0 and 1."""

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        row = super().logits(prefix)
        return row.index_fill(0, torch.tensor([0, 1]), float("-inf")) if len(prefix) % 2 == 0 else row


def test_where_no_shared_token_has_a_chance_the_draft_ends() -> None:
    part = foreign("a b", "a b ab")
    part.model = Silent(3, seed=4)
    lengths = {len(UniversalDrafter(part).propose([0] * n, 3, WARM, RandomSampler(0))) for n in (1, 3)}
    assert lengths == {1}  # the text is read as one token or three, and one more makes it even
    assert not UniversalDrafter(part).propose([0, 0], 3, WARM, RandomSampler(0)).tokens
    case = drafted_by(part, length=4, k=3)
    distribution, _ = output_distribution(run_loop(lambda: case.task(drafter=UniversalDrafter(part))))
    assert largest_error(distribution, case.exact_distribution()) <= EXACT


# The mistake that this method invites.


class NotNormalised(UniversalDrafter):
    """Draws from what is shared, and tells the share of all that the draft model itself gave those tokens."""

    def _read(self, pending: list[int]) -> Tensor:
        self.row = super()._read(pending)
        return self.row

    def draw(self, logits: Tensor, params: SamplingParams, sampler: Sampler, index: int) -> tuple[int, Tensor | None]:
        token, distribution = super().draw(logits, params, sampler, index)
        ours, theirs = self.part.shared
        assert distribution is not None
        return token, distribution.index_copy(0, ours, probabilities(self.row, params)[0, theirs])


def test_a_distribution_that_is_not_normalised_is_caught_twice() -> None:
    part = foreign("a b c", "b a ab")
    case = drafted_by(part, k=1, length=2)
    with pytest.raises(DraftError, match="do not sum to one"):
        check_proposal(NotNormalised(part).propose([0], 1, WARM, RandomSampler(0)), 1, 3)
    distribution, _ = cycle_distribution(case, RULES["rejection"](), lambda: NotNormalised(part))
    assert largest_error(distribution, case.exact_distribution()) > 1e-3


# What is proposed.


def test_the_distribution_is_the_draft_models_over_what_is_shared() -> None:
    part = foreign("- a b c ab", "c b a bc", prefix=(1,))
    proposal = UniversalDrafter(part).propose([1, 4], 3, WARM, RandomSampler(1))
    assert proposal.probs is not None and part.own_of == {1: 2, 2: 1, 3: 0}
    prefix = [1, 2, 2, 1]  # its own beginning, then "a ab" in its letters
    for token, distribution in zip(proposal.tokens, proposal.probs, strict=True):
        row = probabilities(part.model.logits(tuple(prefix))[None], WARM)[0]  # type: ignore[attr-defined]
        shared = row[[2, 1, 0]] / row[:3].sum()
        assert torch.allclose(distribution, torch.cat([distribution.new_zeros(1), shared, distribution.new_zeros(1)]))
        prefix.append(part.own_of[token])


class Scripted(TableModel):
    """Writes one text, whatever it reads, and then its last token, a control token."""

    def __init__(self, words: Words, vocabulary: int, text: str) -> None:
        super().__init__(vocabulary, 0)
        self.ids = words.encode(text)

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        token = (self.ids[len(prefix) :] or [self.vocabulary - 1])[0]
        return torch.nn.functional.one_hot(torch.tensor(token), self.vocabulary).double()


def scripted(target: str, own: str, text: str) -> ForeignModel:
    part = foreign(target, f"{own} -")
    part.model = Scripted(part.own, part.model.vocabulary, text)
    return part


def greedy(target: str, own: str, text: str, k: int) -> Proposal:
    """What comes after "x" where the draft model writes `text`."""
    part = scripted(target, own, f"x{text}")
    return UniversalDrafter(part).propose(part.target.encode("x"), k, SamplingParams(), RandomSampler(0))


def test_a_greedy_draft_is_cut_again_and_its_seams_are_told() -> None:
    assert greedy("x light house", "x light house", "lighthouse", 2).own == ()
    joined = greedy("x lighthouse light", "x light house l", "lighthouse", 2)
    assert (joined.tokens, joined.own, joined.probs) == ((1,), (("light", "house"),), None)
    parted = greedy("x light house s", "x lighthouse s", "lighthouses", 3)
    assert parted.tokens == (1, 2, 3)
    assert parted.own == (("lighthouse",), ("lighthouse",), ())
    across = greedy("x li ghtho use", "x light house", "lighthouse", 3)
    assert across.own == (("light",), ("light", "house"), ("house",))


def test_no_more_than_k_on_either_side() -> None:
    assert greedy("x a b c d", "x abcd", "abcd", 2).tokens == (1, 2)
    assert greedy("x abcd ab", "x a b c d", "abcd", 2).tokens == (2,)


def test_a_draft_ends_where_the_draft_model_ends_or_no_cut_falls() -> None:
    assert greedy("x a b", "x a b", "a", 3).tokens == (1,)
    assert greedy("x xa b", "x a b", "ab", 2).tokens == ()  # the target would have written "xa"


def test_a_boundary_that_no_cut_falls_on_gives_nothing() -> None:
    words = Chunks(["a", "b", "ab", " "])
    assert (
        continued(words, "a", "b") == [] and continued(words, "b", "ab") == [2] and continued(words, "", "ba") == [1, 0]
    )
    assert continued(words, "a", "b?") == []  # it has no token for that


def test_a_tokenizer_that_puts_a_space_before_every_text() -> None:
    """As Llama 2's: what follows a text is read off its end."""
    model = models.BPE({"▁": 0, "a": 1, "b": 2, "▁a": 3, "<0x0A>": 4}, [("▁", "a")], byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    words = Pieces(tokenizer)
    assert words.encode("b a") == [0, 2, 3]
    assert continued(words, "b a", "b a") == [2, 3] and continued(words, "b", "a\n") == [1, 4]
    assert continued(words, "b", " ") == [0] and continued(words, "", "a") == []


def test_a_growing_text_is_cut_as_a_whole_one() -> None:
    words, rng = Chunks(["a", "b", "ab", "é"]), random.Random(2)
    growing, text = Rewritten(words), ""
    for _ in range(60):
        text += "".join(rng.choice("abé") for _ in range(rng.randrange(6)))
        assert growing.follow(text) == words.encode(text)


def test_pieces_lie_under_tokens_by_their_bytes() -> None:
    words = Chunks(["ab", "c", "de"])
    assert cuts(words, [0, 1, 2], [2, 1, 2]) == ()
    assert cuts(words, [0, 1, 2], [3, 1]) == (("ab", "c"), ("de",))


def test_it_stops_at_the_draft_models_own_context_and_serves_one_run() -> None:
    part = foreign("a b", "b a", context=8)
    drafter = UniversalDrafter(part)
    assert len(drafter.propose([0] * 6, 8, WARM, RandomSampler(1))) == 3
    with pytest.raises(ValueError, match="longer than the 8 tokens that the draft model reads"):
        drafter.propose([0] * 9, 2, WARM, RandomSampler(1))
    with pytest.raises(ValueError, match="serves one run"):
        drafter.propose([0], 2, WARM, RandomSampler(1))


def test_of_one_token_with_two_ids_the_later_is_meant() -> None:
    part = foreign("a b", "a b a")
    assert part.own_of == {0: 2, 1: 1} and part.shared.tolist() == [[0, 1], [2, 1]]


# On the embedded models, with a tokenizer that has fewer merges and numbers its tokens the other way round.


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("universal")
    return embedded_target_into(folder / "target"), shortened_draft_into(folder / "draft", 1024)


@pytest.fixture(scope="module")
def family(folders: tuple[Path, Path]) -> zoo.Family:
    return zoo.load_pair(*folders, universal=True, dtype=torch.float32)


def test_another_tokenizer_is_refused_unless_it_is_asked_for(folders: tuple[Path, Path], family: zoo.Family) -> None:
    with pytest.raises(
        ValueError, match=r"another tokenizer: id 0 is .* write ~ before the draft's name, or add --universal"
    ):
        zoo.load_pair(*folders, dtype=torch.float32)
    part = family.drafters["universal"].part
    assert {"universal", "prompt_lookup", "suffix", "quantised", "none"} == family.drafters.keys() - {"early_exit"}
    assert len(part.own_of) == 1023 and part.parameters == family.describe()["universal"]["parameters"]


@pytest.mark.parametrize("drafter", ["universal", pytest.param("adaptive:universal", marks=pytest.mark.long)])
def test_greedy_text_is_plain_decodings(family: zoo.Family, drafter: str) -> None:
    for prompt in ("Once upon a time, a lighthouse", "def fibonacci(n):\n    ", "naïve 海 🐋 "):
        params = SamplingParams(max_tokens=40, ignore_end=True)
        events = list(race(family, prompt, drafter, 4, params))
        assert not any(isinstance(event, Failed) for event in events)
        spoken, plain = (
            [token for e in events if isinstance(e, Committed) and e.lane == lane for token in e.tokens]
            for lane in ("speculative", "plain")
        )
        assert spoken == plain and len(plain) == 40
        assert any(isinstance(event, Drafted) for event in events)


def test_in_a_terminal_what_the_draft_brings_drafts(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The embedded target could also draft by early exit."""
    target, draft = map(str, folders)
    assert (
        terminal.main(["Once", "--target", target, "--draft", draft, "--universal", "--max-tokens", "6", "--json"]) == 0
    )
    events = map(json.loads, capsys.readouterr().out.splitlines())
    started = next(event for event in events if event.get("event") == "started")
    assert (started["lane"], started["drafter"]) == ("speculative", "universal")


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_draft_model_that_transformers_runs(folders: tuple[Path, Path], tmp_path: Path, temperature: float) -> None:
    """GPT-2 with random weights: its words do not help, and do no harm."""
    shutil.copytree(folders[1], tmp_path / "gpt2")
    (tmp_path / "gpt2" / "model.safetensors").unlink()
    config = transformers.GPT2Config(
        vocab_size=1024, n_embd=32, n_layer=1, n_head=2, n_positions=128, bos_token_id=0, eos_token_id=0
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "gpt2")
    family = zoo.load_pair(folders[0], tmp_path / "gpt2", universal=True, dtype=torch.float32)
    params = SamplingParams(temperature, max_tokens=20, seed=3, ignore_end=True)
    events = list(race(family, "Once upon a time", "universal", 3, params))
    assert not any(isinstance(event, Failed) for event in events)
    assert any(isinstance(event, Drafted) for event in events)
    spoken, plain = (e.text for e in events if isinstance(e, Finished))
    assert temperature or spoken == plain


def test_sampling_keeps_drafts_and_fails_nowhere(family: zoo.Family) -> None:
    kept = 0
    for rule in RULES:
        params = replace(WARM, max_tokens=30, seed=5)
        events = list(race(family, "She said that the", "universal", 4, params, rule=rule))
        assert not any(isinstance(event, Failed) for event in events)
        kept += sum(event.accepted for event in events if isinstance(event, Committed))
    assert kept > 20


def test_a_seam_is_told_in_the_trace() -> None:
    part = scripted("x lighthouse . -", "x light house .", "xxlighthouse.")
    target = Scripted(part.target, 4, "xxlighthouse.xx")
    task = Task(target, [0], SamplingParams(max_tokens=5), UniversalDrafter(part), 3, piece=part.target.piece)
    first, *others = (event for event in generate(task) if isinstance(event, Drafted))
    assert first.pieces == ("lighthouse", ".") and first.own == (("light", "house"), ())
    assert from_dict(json.loads(json.dumps(to_dict(first)))) == first
    assert all(event.own is None and "own" not in to_dict(event) for event in others)
