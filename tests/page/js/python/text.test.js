// The tokens of prompts in the browser against Python's.
import test from "node:test";
import assert from "node:assert";
import fs from "node:fs";
import { Tokenizer } from "#page/engine/text.js";

const { TOKENIZER, TEXTS } = process.env;
const json = (file) => JSON.parse(fs.readFileSync(file, "utf8"));

test("every odd prompt has Python's tokens", () => {
  const tokenizer = new Tokenizer(json(TOKENIZER)),
    other = json(TEXTS).filter(({ text, chat, ids }) => String(tokenizer.prompt(text, chat, 0)) !== String(ids));
  assert.deepEqual(other.slice(0, 5), [], `${other.length} differ`);
});
