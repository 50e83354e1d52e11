"""Start the app: `python app.py`, then open the address that it prints."""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from specdec.ui import session
from specdec.ui.build import build
from specdec.ui.theme import launch_settings

demo = build()


def main() -> None:
    parser = argparse.ArgumentParser(description="Watch speculative decoding on a real model.")
    parser.add_argument("--host", help="address to listen on; 0.0.0.0 for a classroom (default: this machine only)")
    parser.add_argument("--port", type=int, help="port to listen on (default: the first free one from 7860)")
    parser.add_argument("--device", choices=session.DEVICES, default=session.device, help="of live runs; cuda: a GPU")
    flags = parser.parse_args()
    if flags.device != session.device:
        from specdec.families.zoo import check_device

        try:
            check_device(flags.device)
        except ValueError as error:
            parser.error(str(error))
    session.device = flags.device
    demo.launch(server_name=flags.host, server_port=flags.port, **launch_settings())


if __name__ == "__main__":
    main()
