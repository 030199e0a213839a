"""Writes safetensors files, also of bf16, which numpy does not have."""
import json

import numpy as np


def to_bf16(data):
    """Bits of the nearest bf16, ties to even."""
    bits = data.view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (rounded >> 16).astype(np.uint16)


def write_safetensors(path, tensors, dtype):
    """The format: 8 bytes with the header's length, the header, the data."""
    tag, convert = {
        "f32": ("F32", lambda x: np.ascontiguousarray(x, "<f4")),
        "bf16": ("BF16", lambda x: to_bf16(np.ascontiguousarray(x, "<f4"))),
    }[dtype]
    header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, data in tensors:
        blob = convert(data)
        header[name] = {
            "dtype": tag,
            "shape": list(data.shape),
            "data_offsets": [at, at + blob.nbytes],
        }
        blobs.append(blob)
        at += blob.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 64)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little"))
        out.write(text)
        for blob in blobs:
            out.write(blob.tobytes())
    return at
