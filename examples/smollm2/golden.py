#!/usr/bin/env python3
"""Writes golden.json: what an independent implementation says of a model.

    golden.py MODEL_DIR [golden.json]

MODEL_DIR is what convert.py made with --dtype f32. Needs torch and
transformers, which neither the build nor the tests do. For each prompt: its
tokens, logits at some positions (the largest and an even sample of the
others), and the tokens that greedy decoding goes on with.
"""
import json
import pathlib
import sys

import torch
import transformers
from tokenizers import Tokenizer

PROMPTS = {
    "short": "The capital of France is",
    "one token": "Once",
    "digits": "2 + 2 = 4, 12 * 12 = 144, 1000003 - 17 =",
    "non-English": "Der Zug nach Köln fährt um halb neun ab. "
                   "Привет, мир! 今日はいい天気です。",
    "chat": "<|im_start|>user\nName three primary colors.<|im_end|>\n"
            "<|im_start|>assistant\n",
}
LONG_SENTENCE = ("A wall of {n} bricks stands for {n} years, and each year "
                 "the rain takes away a little of its mortar. ")
LONG_TOKENS = 300
GREEDY_TOKENS = 64
SAMPLE_STEP = 97
LARGEST = 16


def prompts(tokenizer):
    for name, text in PROMPTS.items():
        yield name, text, tokenizer.encode(text).ids
    text = "".join(LONG_SENTENCE.format(n=n) for n in range(3, 40))
    ids = tokenizer.encode(text).ids[:LONG_TOKENS]
    assert len(ids) == LONG_TOKENS
    yield "300 tokens", tokenizer.decode(ids), ids


def logits_at(logits, position):
    row = logits[position]
    chosen = set(range(0, row.numel(), SAMPLE_STEP))
    chosen |= set(row.topk(LARGEST).indices.tolist())
    indices = sorted(chosen)
    return {"position": position, "indices": indices,
            "values": [round(float(row[i]), 5) for i in indices]}


def continue_greedily(model, ids):
    """The next tokens, ends of text included, and how clear the closest
    choice was: a gap of the size of rounding would make the case useless."""
    tokens, gap, cache, step = [], float("inf"), None, torch.tensor([ids])
    for _ in range(GREEDY_TOKENS):
        out = model(step, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = out.logits[0, -1].topk(2)
        gap = min(gap, float(best.values[0] - best.values[1]))
        tokens.append(int(best.indices[0]))
        step = best.indices[:1].reshape(1, 1)
    return tokens, gap


def main():
    model_dir = pathlib.Path(sys.argv[1])
    out = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                       pathlib.Path(__file__).with_name("golden.json"))
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM.from_pretrained(
        model_dir, dtype=torch.float32)
    tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    cases = []
    for name, text, ids in prompts(tokenizer):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
            greedy, gap = continue_greedily(model, ids)
        print(f"{name}: {len(ids)} tokens, closest choice {gap:.4f}")
        positions = sorted({0, len(ids) // 2, len(ids) - 1})
        cases.append({"name": name, "text": text, "tokens": ids,
                      "logits": [logits_at(logits, p) for p in positions],
                      "greedy": greedy})
    made_with = (f"torch {torch.__version__}, "
                 f"transformers {transformers.__version__}, f32")
    with open(out, "w", encoding="utf-8") as file:
        file.write('{"made_with": ' + json.dumps(made_with) + ', "cases": [\n')
        file.write(",\n".join(json.dumps(c, ensure_ascii=False,
                                         separators=(",", ":"))
                              for c in cases))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
