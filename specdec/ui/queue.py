"""Gradio's queue, made so that no call ends it for all the others.

It keeps the messages to each session, and its one loop ends for good where it has one for a session that is not kept:
because it is named "", or its visitor left at the wrong moment, or 2,000 others came.
"""

from __future__ import annotations

import asyncio
from typing import Any

import gradio as gr
from gradio.utils import LRUCache


class Messages(LRUCache[str, Any]):
    """By session. Nobody takes those to a session that is not kept."""

    def __missing__(self, session: str) -> Any:
        return asyncio.Queue()


def queue(page: gr.Blocks, **settings: Any) -> None:
    page.queue(**settings)
    kept = page._queue
    kept.pending_messages_per_session = Messages(kept.pending_messages_per_session.max_size)
    push = kept.push

    async def named(body: Any, **more: Any) -> Any:
        event = page.fns.get(body.fn_index)
        if event and not event.fn:
            return False, "That is done in the browser alone; there is nothing to call.", "error"
        body.session_hash = body.session_hash or None  # a call without a session is one by itself, with its own limits
        return await push(body=body, **more)

    kept.push = named  # type: ignore[method-assign, assignment]
