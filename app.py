"""Start the app: `python app.py`, then open the address that it prints. `specdec app` does the same."""

from __future__ import annotations

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
if os.environ.get("SPACES_ZERO_GPU") and __name__ != "__mp_main__":
    import spaces  # noqa: F401 -- before torch, whose CUDA it emulates

if __name__ == "__main__":
    import sys

    from specdec.__main__ import main

    raise SystemExit(main(["app", *sys.argv[1:]]))
elif __name__ != "__mp_main__":  # for `gradio app.py`; the engine's process is `__mp_main__` and serves no page
    from specdec.ui.build import build

    demo = build()
