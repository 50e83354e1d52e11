"""`python -m tools.certificates`: record the certificates of the shipped rule and of each known mistake for the page.

Two pairs of models are certified: the toy pair, and the embedded models after the page's first story prompt.
"""

import json
import time
from typing import Any

from specdec import Engine
from specdec.proof import SAMPLE_SIZES
from specdec.proof.certify import certify, embedded, four_digits, MAX_ERROR, ModelPair, next_tokens, passed, toy
from specdec.proof.enumeration import JointDistribution, output_distribution, total_variation
from specdec.proof.goodness_of_fit import draws_needed, is_red
from specdec.proof.mistakes import Mistake, MISTAKES
from specdec.ui.recorded import CERTIFICATES
from specdec.ui.text import prompts

LONGEST_S = 120.0  # after this time, sampling ends if the last test failed
SEED = 11


def enumerated(pair: ModelPair, mistake: Mistake | None) -> dict[str, Any]:
    """Return the exact total variation from the target for 1, 2, … tokens, and how many draws would reveal it."""
    distribution, count = output_distribution(next_tokens(pair, mistake))
    distances: list[float] = []
    for length, exact in enumerate(pair.exact, start=1):
        marginal: JointDistribution = {}
        for tokens, chance in distribution.items():
            marginal[tokens[:length]] = marginal.get(tokens[:length], 0.0) + chance
        distances.append(total_variation(marginal, exact))
    needed = None if distances[-1] <= MAX_ERROR else draws_needed(distribution, pair.exact[-1])
    return {"tv": [four_digits(tv) for tv in distances], "paths": count, "needed": needed}


def certificate_of(pair: ModelPair, key: str) -> dict[str, Any]:
    """Make the certificate of the mistake `key`; "" is the shipped rule."""
    mistake, result, began = MISTAKES.get(key), dict[str, Any](), time.monotonic()
    for state in certify(pair, mistake, max(SAMPLE_SIZES), SEED):
        if state["sampled"] and state["done"] == state["sampled"][-1][0]:
            result = state
        if result and time.monotonic() - began > LONGEST_S and any(map(is_red, result["sampled"][-1][1])):
            break
    return result | ({"exact": enumerated(pair, mistake)} if pair.name == "toy" else {})


def main() -> None:
    recorded: dict[str, dict[str, Any]] = {}
    for pair in (toy(), embedded(Engine(device="cpu").models, prompts()["story"][0])):
        for key in ("", *MISTAKES):
            recorded.setdefault(pair.name, {})[key] = result = certificate_of(pair, key)
            marks = " ".join("✓" if check else "✗" for check in passed(result))
            print(f"{pair.name:9} {key or 'none':20} {marks}", flush=True)
    written = json.dumps(recorded, ensure_ascii=False, separators=(",", ":"))
    CERTIFICATES.write_text(written + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
