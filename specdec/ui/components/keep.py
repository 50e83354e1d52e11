"""What a visitor made stays: settings and tab in the address, the run in the browser tab. See `shared/keep.js`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from .drawn import drawn

CHANGED = '(...values) => { window.dispatchEvent(new CustomEvent("sd-settings", { detail: values })); }'
# What the address cannot hold waits in the browser tab: a long prompt, and the run. One that was left a minute ago, or
# before a reload, is shown again; no more of it will come.
KEPT = """() => {
  const nothing = { __type__: "update" };
  const kept = (name) => { try { return sessionStorage.getItem(name); } catch { return null; } };
  const prompt = kept("specdec.prompt"), run = kept("specdec.run");
  let left = 0, log = "";
  try { ({ left, log } = JSON.parse(run) || {}); sessionStorage.removeItem("specdec.run"); } catch { }
  if (location.hash.startsWith("#run=")) log = ""; // the address brings another
  const here = ["reload", "back_forward"].includes((performance.getEntriesByType("navigation")[0] || {}).type);
  return [
    prompt === null ? nothing : prompt,
    log && (here || Date.now() - left < 60000) ? { __type__: "update", value: log, ended: "kept" } : nothing,
  ];
}"""


def keep(
    demo: gr.Blocks, fields: dict[str, Any], screen: gr.HTML, tabs: Sequence[str], private: dict[str, Any]
) -> None:
    """`fields` by the names that a link gives them; `screen` shows the run; `tabs` in their order."""
    usual = {name: field.value for name, field in fields.items()}
    drawn("shared/keep", words={}, names=list(fields), usual=usual, tabs=list(tabs))
    every = list(fields.values())
    gr.on([field.change for field in every], None, every, None, js=CHANGED, queue=False, **private)
    demo.load(None, None, [fields["prompt"], screen], js=KEPT, queue=False, **private)
