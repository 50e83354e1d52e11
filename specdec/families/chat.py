"""Chat templates: the text that a model trained on conversations expects before and after a prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tokenizers import Tokenizer

from ..messages import Refused
from ..models import gguf_header
from ..models.files import brief, prefix_errors, read_json
from ..text import ids_of
from . import gguf_tokenizer

FILE = "chat_template.jinja"
TOKENIZER_CONFIG = "tokenizer_config.json"
MESSAGE = "speculative-decoding"  # placeholder for a prompt while the template is rendered

Messages = Sequence[Mapping[str, str]]  # each with `role` and `content`


@dataclass(frozen=True)
class Chat:
    """The template's text before and after a prompt. `trims` says whether the template strips the prompt."""

    before: str
    after: str
    trims: bool
    template: str = field(default="", compare=False)
    controls: Mapping[str, str] = field(default_factory=dict, compare=False)  # tokens that the template can use

    def tokens(self, prompt: str, tokenizer: Tokenizer) -> list[int]:
        """Encode the template with this prompt. What looks like a control token in the prompt stays text."""
        prompt = prompt.strip() if self.trims else prompt
        controls = tokenizer.get_added_tokens_decoder()
        together, before, after = (
            with_controls(text, tokenizer) for text in (self.before + prompt + self.after, self.before, self.after)
        )
        if sum(token in controls for token in together) == sum(token in controls for token in before + after):
            return together
        return [*before, *ids_of(prompt, tokenizer), *after]

    def conversation(self, messages: Messages, tokenizer: Tokenizer) -> list[int]:
        """Encode the messages of a chat. Raises Refused unless the template contains each once, and in order."""
        marks = [f"{MESSAGE}-{i}-" for i in range(len(messages))]
        marked = [{**message, "content": mark} for message, mark in zip(messages, marks, strict=True)]
        (rest,), tokens = render(self.template, self.controls, [marked]), list[int]()
        for message, mark in zip(messages, marks, strict=True):
            before, present, rest = rest.partition(mark)
            if not present or mark in rest:
                raise Refused(f"the chat template does not show the message {message['content'][:40]!r} once")
            content = message["content"].strip() if self.trims else message["content"]
            tokens += [*with_controls(before, tokenizer), *ids_of(content, tokenizer)]
        return [*tokens, *with_controls(rest, tokenizer)]

    def around(self, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
        """Return the template's tokens before and after a prompt."""
        return with_controls(self.before, tokenizer), with_controls(self.after, tokenizer)


def with_controls(text: str, tokenizer: Tokenizer) -> list[int]:
    """Encode a template's text. While `encode_special_tokens` is False, control tokens become their ids."""
    tokenizer.encode_special_tokens = False
    try:
        return ids_of(text, tokenizer)
    finally:
        tokenizer.encode_special_tokens = True


def load_chat(place: Path) -> Chat | None:
    template, controls = template_of(place)
    return make_chat(template, controls) if template else None


def make_chat(template: str, controls: Mapping[str, str]) -> Chat:
    """Render a template around a placeholder, without thinking if possible. Raises Refused unless it has just one."""
    questions = ([{"role": "user", "content": content}] for content in (MESSAGE, f" {MESSAGE} "))
    bare, spaced = render(template, controls, list(questions))
    before, prompt, after = bare.partition(MESSAGE)
    if not prompt or MESSAGE in after:
        raise Refused("the chat template does not contain the prompt exactly once")
    return Chat(before, after, spaced != f"{before} {MESSAGE} {after}", template, controls)


def template_of(place: Path) -> tuple[str, dict[str, str]]:
    """Return a checkpoint's template ("" if it has none), and the control tokens that the template can use."""
    if gguf_header.is_file(place):
        header = gguf_header.read_header(place)
        return header.value("tokenizer.chat_template", ""), gguf_tokenizer.controls(header)
    file = place / TOKENIZER_CONFIG
    facts = read_json(file) if file.is_file() else {}
    with prefix_errors(TOKENIZER_CONFIG):
        controls = {
            name: value["content"] if isinstance(value, dict) else value
            for name, value in facts.items()
            if name.endswith("_token") and value
        }
        template = facts.get("chat_template") or ""
        if isinstance(template, list):  # the checkpoint has several named templates
            template = next((entry["template"] for entry in template if entry["name"] == "default"), "")
    return (place / FILE).read_text(encoding="utf-8") if (place / FILE).is_file() else template, controls


def render(template: str, controls: Mapping[str, str], conversations: Sequence[Messages]) -> list[str]:
    """Render a template with each of the conversations, in Jinja's sandbox. Raises Refused if that fails."""
    from transformers.utils.chat_template_utils import render_jinja_template

    options = {"add_generation_prompt": True, "enable_thinking": False, **controls}
    try:
        texts: list[str] = render_jinja_template(conversations, chat_template=template, **options)[0]
    except Exception as error:  # a template can fail in any way
        raise Refused(f"the chat template cannot be rendered: {brief(error)}") from error
    return texts
