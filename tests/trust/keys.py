"""Keys: every caller that asks two servers is run against servers that note what came, and where it came."""

from __future__ import annotations

import contextlib
import io

from .figures import all_of, at_least, Figure, none


def count(long: bool) -> list[Figure]:
    from callers import CALLERS, importers, KEY, keys_sent

    here, foreign, sent = 0, 0, 0
    for caller in CALLERS.values():
        for host, redirected in (("127.0.0.1", False), ("localhost", False), ("127.0.0.1", True), ("localhost", True)):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                own, other = keys_sent(caller, host, redirected)
            sent += 1
            here += own == {f"Bearer {KEY}"}
            foreign += any(KEY in one for one in other) and (redirected or host != "127.0.0.1")
    connecting = importers("connect_pair")
    return [
        all_of("run here, of all that connect", len(connecting & set(CALLERS)), len(connecting), 5),
        at_least("races and certificates asked for with a key", sent, 20),
        none("server asked without its key", sent - here),
        none("keys sent to a foreign host, or after a redirect", foreign),
    ]
