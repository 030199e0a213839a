#!/usr/bin/env python3
"""Turns a GGUF file of a Llama-family model into what generate reads.

    convert.py MODEL.gguf|WHEEL.whl OUT [--dtype f32|bf16]

OUT gets model.safetensors with the names, shapes and layout of Hugging Face's
Llama, config.json, and tokenizer.json. Quantized tensors are expanded: in f32
exactly, in bf16 rounded to nearest. A wheel is searched for its one .gguf file.
"""
import argparse
import json
import pathlib
import sys
import tempfile
import zipfile

import gguf
import numpy as np

from safetensors_file import write_safetensors

# Names of a layer's tensors in GGUF, and after `model.layers.N.`.
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
# Computed from the configuration by whoever needs them.
DERIVED = {"rope_freqs.weight"}


def fail(message):
    sys.exit(f"convert.py: error: {message}")


def find_gguf(path, out):
    """The path of the GGUF file that `path` is or, if a wheel, contains."""
    if not path.exists():
        fail(f"{path} does not exist")
    if path.suffix != ".whl":
        return path
    with zipfile.ZipFile(path) as wheel:
        names = [n for n in wheel.namelist() if n.endswith(".gguf")]
        if len(names) != 1:
            fail(f"{path} has {len(names)} .gguf files; one is wanted")
        return pathlib.Path(wheel.extract(names[0], out))


class Fields:
    """The metadata of a GGUF file, with a message for what is missing."""

    def __init__(self, reader):
        self.fields = reader.fields
        self.arch = self.get("general.architecture")

    def get(self, name, default=None):
        field = self.fields.get(name)
        if field is None and default is None:
            fail(f"the file has no '{name}'")
        return default if field is None else field.contents()

    def of_model(self, name, default=None):
        return self.get(f"{self.arch}.{name}", default)


def make_config(fields, names):
    hidden = fields.of_model("embedding_length")
    heads = fields.of_model("attention.head_count")
    head_dim = fields.of_model("rope.dimension_count", hidden // heads)
    if head_dim != hidden // heads:
        fail(f"rope turns {head_dim} of {hidden // heads} elements of a head; "
             "all are wanted")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": fields.of_model("feed_forward_length"),
        "num_hidden_layers": fields.of_model("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": fields.of_model("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": fields.of_model("context_length"),
        "rms_norm_eps": float(
            f"{fields.of_model('attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_theta": float(fields.of_model("rope.freq_base", 10000.0)),
        "rope_scaling": None,
        "vocab_size": fields.of_model("vocab_size"),
        "tie_word_embeddings": "output.weight" not in names,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id", 0),
        "eos_token_id": fields.get("tokenizer.ggml.eos_token_id", 0),
    }


def halves_first(weight, heads):
    """Rows of a head from pairs (x0 y0 x1 y1 ...), which GGUF turns together,
    to halves (x0 x1 ... y0 y1 ...), which Hugging Face's rope turns."""
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def target_name(name):
    if name in NAMES:
        return NAMES[name]
    parts = name.split(".")  # blk.N.<what>.weight
    if len(parts) == 4 and parts[0] == "blk" and parts[3] == "weight":
        if parts[2] in LAYER_NAMES:
            return f"model.layers.{parts[1]}.{LAYER_NAMES[parts[2]]}.weight"
    fail(f"tensor '{name}' has no place in a Llama model")


def read_tensors(reader, config):
    """Yields (name, f32 array) under the new names."""
    for tensor in reader.tensors:
        if tensor.name in DERIVED:
            continue
        shape = tuple(int(d) for d in reversed(tensor.shape))
        data = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        data = data.reshape(shape).astype(np.float32, copy=False)
        if tensor.name.endswith("attn_q.weight"):
            data = halves_first(data, config["num_attention_heads"])
        if tensor.name.endswith("attn_k.weight"):
            data = halves_first(data, config["num_key_value_heads"])
        yield target_name(tensor.name), data


def make_tokenizer(fields):
    """A byte-level BPE in the format of the `tokenizers` library."""
    model = fields.get("tokenizer.ggml.model")
    if model != "gpt2":
        fail(f"the tokenizer is a '{model}'; byte-level BPE ('gpt2') is wanted")
    tokens = fields.get("tokenizer.ggml.tokens")
    kinds = fields.get("tokenizer.ggml.token_type")
    control = [i for i, kind in enumerate(kinds) if kind == 3]
    split = [{"type": "ByteLevel", "add_prefix_space": False,
              "trim_offsets": True, "use_regex": True}]
    if fields.get("tokenizer.ggml.pre", "default") == "smollm":
        split.insert(0, {"type": "Digits", "individual_digits": True})
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": tokens[i], "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False,
             "special": True} for i in control
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": split},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True,
                    "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None,
            "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": fields.get("tokenizer.ggml.merges"),
        },
    }


def convert(reader, args):
    fields = Fields(reader)
    if fields.arch != "llama":
        fail(f"the architecture is '{fields.arch}'; 'llama' is wanted")
    config = make_config(fields, {t.name for t in reader.tensors})
    config["torch_dtype"] = {"f32": "float32", "bf16": "bfloat16"}[args.dtype]
    size = write_safetensors(args.out / "model.safetensors",
                             read_tensors(reader, config), args.dtype)
    for name, content in [("config.json", config),
                          ("tokenizer.json", make_tokenizer(fields))]:
        with open(args.out / name, "w", encoding="utf-8") as out:
            json.dump(content, out, indent=1, ensure_ascii=False)
            out.write("\n")
    print(f"{args.out}: {len(reader.tensors)} tensors, "
          f"{size / 1e6:.0f} MB of {args.dtype}, "
          f"{config['num_hidden_layers']} layers")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="bf16")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.out) as folder:
        convert(gguf.GGUFReader(find_gguf(args.model, folder)), args)


if __name__ == "__main__":
    main()
