"""Draft-model sampling in OpenVINO GenAI, on models whose law is a table: what is drawn, and what should be.

    pip install openvino-genai==2026.4.1.0 openvino-tokenizers==2026.4.1.0 transformers
    python openvino_genai_draft_sampling.py

The next token of each model depends on the last one alone, so the laws of the output are known exactly.
"""

import tempfile
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset6 as stateful
import openvino_genai as genai
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo

V, N = 32, 3000
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def write(folder: Path, table: np.ndarray) -> Path:
    """A model whose logits after token i are table[i]: one attention layer, whose output is multiplied by zero."""
    ids = op.parameter([-1, -1], np.int64)
    mask, places, beam = (
        op.parameter([-1, -1], np.int64),
        op.parameter([-1, -1], np.int64),
        op.parameter([-1], np.int32),
    )
    for node, name in zip(
        (ids, mask, places, beam), ("input_ids", "attention_mask", "position_ids", "beam_idx"), strict=True
    ):
        node.set_friendly_name(name)
        node.output(0).set_names({name})
    sinks = []

    def whole(*numbers: int):
        return op.constant(np.array(numbers, dtype=np.int64))

    def heads(seed: int):
        weights = np.random.default_rng(seed).normal(size=(V, V)).astype(np.float32) / 10
        split = op.reshape(op.matmul(words, op.constant(weights), False, True), whole(0, 0, 1, V), True)
        return op.transpose(split, whole(0, 2, 1, 3))

    def cached(new, name: str):
        info = VariableInfo()
        info.data_shape, info.data_type, info.variable_id = ov.PartialShape([-1, 1, -1, V]), ov.Type.f32, name
        variable = Variable(info)
        rows = op.gather(op.shape_of(ids, "i64"), whole(0), op.constant(0))
        empty = op.broadcast(op.constant(np.float32(0)), op.concat([rows, whole(1, 0, V)], 0))
        full = op.concat([op.gather(stateful.read_value(empty, variable), beam, op.constant(0)), new], 2)
        sinks.append(stateful.assign(full, variable))
        return full

    words = op.gather(op.constant(np.eye(V, dtype=np.float32)), ids, op.constant(0))  # [B, S, V]
    query, key, value = heads(0), cached(heads(1), "key"), cached(heads(2), "value")
    length = op.squeeze(op.gather(op.shape_of(mask, "i64"), whole(1), op.constant(0)), whole(0))
    columns = op.range(op.constant(np.int64(0)), length, op.constant(np.int64(1)), "i64")
    seen = op.less_equal(op.unsqueeze(columns, whole(0, 1, 2)), op.unsqueeze(places, whole(1, 3)))
    bias = op.select(seen, op.constant(np.float32(0)), op.constant(np.float32(-65504)))
    read = op.transpose(op.scaled_dot_product_attention(query, key, value, bias, causal=False), whole(0, 2, 1, 3))
    nothing = op.matmul(op.reshape(read, whole(0, 0, V), True), op.constant(np.zeros((V, V), np.float32)), False, True)
    logits = op.matmul(
        op.add(words, nothing), op.constant(np.ascontiguousarray(table.T, dtype=np.float32)), False, True
    )
    logits.output(0).set_names({"logits"})
    folder.mkdir()
    model = ov.Model([op.result(logits)], sinks, [ids, mask, places, beam], "table")
    ov.save_model(model, folder / "openvino_model.xml", compress_to_fp16=False)
    for name, tokenizer in zip(("tokenizer", "detokenizer"), tokenizers(), strict=True):
        ov.save_model(tokenizer, folder / f"openvino_{name}.xml")
    return folder


def tokenizers():
    from openvino_tokenizers import convert_tokenizer
    from tokenizers import decoders, models, pre_tokenizers, Tokenizer
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.BPE({chr(65 + i): i for i in range(V)}, []))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return convert_tokenizer(PreTrainedTokenizerFast(tokenizer_object=words, eos_token="`"), with_detokenizer=True)


def rows(laws: dict[int, dict[int, float]], otherwise: dict[int, float]) -> np.ndarray:
    """Logits [V, V]: laws[i] after token i."""
    table = np.full((V, V), -40.0)
    for token in range(V):
        for following, probability in laws.get(token, otherwise).items():
            table[token, following] = np.log(probability)
    return table


def drawn(target: Path, draft: Path | None, first: int = 0, length: int = 3) -> np.ndarray:
    """[N, length] tokens after the prompt `first`, each text with a seed of its own."""
    scheduler = genai.SchedulerConfig()
    scheduler.cache_size = 1
    more = {} if draft is None else {"draft_model": genai.draft_model(draft, "CPU", **EXACT)}
    pipeline = genai.LLMPipeline(target, "CPU", scheduler_config=scheduler, **EXACT, **more)
    config = genai.GenerationConfig(
        do_sample=True, temperature=1.0, top_p=1.0, top_k=0, max_new_tokens=length, ignore_eos=True
    )
    if draft is not None:
        config.num_assistant_tokens = 1
    texts = []
    for number in range(N):
        config.rng_seed = 13 + 7919 * number
        texts.append(pipeline.generate(ov.Tensor(np.array([[first]], dtype=np.int64)), config).tokens[0])
    return np.array(texts)


def shares(tokens: np.ndarray) -> dict[int, float]:
    found, counts = np.unique(tokens, return_counts=True)
    return {int(token): round(float(count) / len(tokens), 3) for token, count in zip(found, counts, strict=True)}


def main() -> None:
    print("openvino-genai", genai.get_version(), "· openvino", ov.get_version())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tenth = write(folder / "tenth", rows({}, {1: 0.1, 2: 0.9}))
        sure = write(folder / "sure", rows({}, {1: 1.0}))
        print("\nA  The target draws 1 with .1 and 2 with .9, whatever came before. The draft is sure of 1.")
        print("   second token expected {1: 0.1, 2: 0.9}")
        print("   without a draft      ", shares(drawn(tenth, None)[:, 1]))
        print("   with the draft       ", shares(drawn(tenth, sure)[:, 1]))

        branches: dict[int, dict[int, float]] = {token: {5: 1.0} for token in range(10, 20)}
        target = write(folder / "branches", rows(branches, {1: 0.95, 2: 0.05}))
        spread = write(folder / "spread", rows({}, {token: 0.1 for token in range(10, 20)}))
        print(
            "\nB  After 0, 1 or 2 the target draws 1 or 2; only after 10 … 19 it draws 5. The draft draws from 10 … 19."
        )
        print("   second token expected {1: 0.95, 2: 0.05}")
        print("   without a draft      ", shares(drawn(target, None)[:, 1]))
        tokens = drawn(target, spread)
        print("   with the draft       ", shares(tokens[:, 1]))
        third = shares(tokens[tokens[:, 1] == 5][:, 2])
        print("   third token after a 5, expected {1: 0.95, 2: 0.05}")
        print(
            f"   with the draft        {len(third)} different ones, {min(third.values())} to {max(third.values())} each"
        )

        half = write(folder / "half", rows({}, {1: 0.5, 2: 0.5}))
        print("\nC  Target and draft are the same coin: 1 or 2, each .5, whatever came before.")
        for name, draft in (("without a draft", None), ("with the draft", half)):
            tokens = drawn(half, draft)
            print(f"   first = second: expected 0.5; {name}: {np.mean(tokens[:, 0] == tokens[:, 1]):.3f}")


if __name__ == "__main__":
    main()
