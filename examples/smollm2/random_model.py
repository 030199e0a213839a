#!/usr/bin/env python3
"""Writes a model with the shapes of SmolLM2-135M and random weights.

    random_model.py OUT [--dtype f32|bf16] [--layers N] [--seed N]

What it says is noise, but it computes, sends and takes memory as the trained
one does. Its tokenizer knows single bytes.
"""
import argparse
import json
import pathlib

import numpy as np

from safetensors_file import write_safetensors

VOCABULARY = 49152
CONFIG = {
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-05,
    "rope_theta": 100000.0,
    "vocab_size": VOCABULARY,
    "tie_word_embeddings": True,
}


def tensors(layers, seed):
    rng = np.random.default_rng(seed)
    hidden, ffn = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    keys = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]

    def matrix(rows, columns):
        scale = columns ** -0.5
        return rng.standard_normal((rows, columns), np.float32) * scale

    yield "model.embed_tokens.weight", matrix(VOCABULARY, hidden)
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        for name, rows, columns in [
                ("self_attn.q_proj", hidden, hidden),
                ("self_attn.k_proj", keys, hidden),
                ("self_attn.v_proj", keys, hidden),
                ("self_attn.o_proj", hidden, hidden),
                ("mlp.gate_proj", ffn, hidden),
                ("mlp.up_proj", ffn, hidden),
                ("mlp.down_proj", hidden, ffn)]:
            yield prefix + name + ".weight", matrix(rows, columns)
        for name in ["input_layernorm", "post_attention_layernorm"]:
            yield prefix + name + ".weight", np.ones(hidden, np.float32)
    yield "model.norm.weight", np.ones(hidden, np.float32)


def byte_tokens():
    """The character that stands for each byte in a tokenizer.json."""
    printable = [b for b in range(256)
                 if 33 <= b <= 126 or (b >= 161 and b != 173)]
    hidden = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {
        chr(256 + i): b for i, b in enumerate(hidden)}


def tokenizer():
    vocabulary = byte_tokens()
    vocabulary |= {f"<{i}>": i for i in range(256, VOCABULARY)}
    return {
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                          "use_regex": True},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="bf16")
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    write_safetensors(args.out / "model.safetensors",
                      tensors(args.layers, args.seed), args.dtype)
    config = CONFIG | {"num_hidden_layers": args.layers}
    (args.out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (args.out / "tokenizer.json").write_text(json.dumps(tokenizer()) + "\n")


if __name__ == "__main__":
    main()
