"""`python -m tools.certificates`: those that the page shows before anybody samples, at its first story prompt."""

from __future__ import annotations

import json

from specdec.cli.certify import certificate_of, line
from specdec.paths import ASSETS
from specdec.proof.certify import mistakes_of
from specdec.proof.pair import embedded, guided_toy, toy

RECORDED = ASSETS / "certificates.json"


def record() -> None:
    text = json.loads((ASSETS / "prompts.json").read_text(encoding="utf-8"))["story"][0]
    recorded: dict[str, dict[str, object]] = {}
    for pair in (toy(), guided_toy(), embedded(text)):
        for key in ("", *mistakes_of(pair)):
            recorded.setdefault(pair.name, {})[key] = result = certificate_of(pair, key)
            print(line(result), flush=True)
    RECORDED.write_text(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
