"""Holds the golden logits to a plain forward pass in f64 that shares no code with any engine.

Usage, with the packages `gguf` and `numpy` installed:

    python check_reference.py MODEL.gguf FILE.golden [--gelu-f16] [--int8-block 32]

Prints the mean and the worst KL(reference || this pass), as format.md counts it, and llama.cpp's own beside it.
`--gelu-f16` rounds GELU's input and output to F16, as llama.cpp's table does. `--int8-block N` rounds the input of every
matrix product to int8 with one scale for N values: what a kernel with such activations costs at least. Slow and hungry
(all weights as f64), it is for checking, not for running models.
"""

import argparse
import struct

import gguf
import numpy as np
from gguf.quants import dequantize


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.architecture = reader.get_field("general.architecture").contents()
        self.reader = reader
        self.weights = {t.name: dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}

    def number(self, key, default=None):
        value = self.reader.get_field(f"{self.architecture}.{key}")
        return default if value is None else value.contents()


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def rotate(x, base, divisors, interleaved):
    """RoPE on [position, head, dimension]: pairs are neighbours in llama files, halves apart in the others."""
    count, _, size = x.shape
    frequencies = base ** (-np.arange(0, size, 2) / size) / divisors
    angles = np.arange(count)[:, None, None] * frequencies
    if interleaved:
        first, second = np.s_[..., 0::2], np.s_[..., 1::2]
    else:
        first, second = np.s_[..., : size // 2], np.s_[..., size // 2 :]
    out = np.empty_like(x)
    out[first] = x[first] * np.cos(angles) - x[second] * np.sin(angles)
    out[second] = x[first] * np.sin(angles) + x[second] * np.cos(angles)
    return out


def gelu(x, through_f16):
    x = x.astype(np.float16).astype(np.float64) if through_f16 else x
    y = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return y.astype(np.float16).astype(np.float64) if through_f16 else y


def int8_rounding(block):
    def round_rows(x):
        grouped = x.reshape(*x.shape[:-1], -1, block)
        scale = np.abs(grouped).max(-1, keepdims=True) / 127
        codes = np.rint(grouped / np.where(scale > 0, scale, 1))
        return (codes * scale).reshape(x.shape)

    return round_rows


def forward(model, token_ids, gelu_f16=False, activations=lambda x: x):
    """Logits [position, vocabulary]."""
    w, heads, kv_heads = model.weights, model.number("attention.head_count"), model.number("attention.head_count_kv")
    width = model.number("embedding_length")
    size = model.number("attention.key_length", width // heads)
    epsilon = model.number("attention.layer_norm_rms_epsilon")
    gemma, interleaved = model.architecture == "gemma3", model.architecture == "llama"
    divisors = w.get("rope_freqs.weight", 1.0)
    count = len(token_ids)
    distance = np.arange(count)[:, None] - np.arange(count)[None]

    x = w["token_embd.weight"][token_ids]
    if gemma:
        x = x * np.sqrt(width)
    for layer in range(model.number("block_count")):

        def get(name, layer=layer):
            return w[f"blk.{layer}.{name}"]

        def norm(x, name, layer=layer):
            return rms_norm(x, get(f"{name}.weight", layer), epsilon)

        def product(x, name, layer=layer):
            bias = w.get(f"blk.{layer}.{name}.bias", 0.0)
            return activations(x) @ get(f"{name}.weight", layer).T + bias

        h = norm(x, "attn_norm")
        q = product(h, "attn_q").reshape(count, heads, size)
        k = product(h, "attn_k").reshape(count, kv_heads, size)
        v = product(h, "attn_v").reshape(count, kv_heads, size)
        if f"blk.{layer}.attn_q_norm.weight" in w:
            q, k = norm(q, "attn_q_norm"), norm(k, "attn_k_norm")
        sliding = gemma and layer % 6 != 5
        base = 10000.0 if sliding else model.number("rope.freq_base")
        q, k = rotate(q, base, divisors, interleaved), rotate(k, base, divisors, interleaved)
        k, v = np.repeat(k, heads // kv_heads, axis=1), np.repeat(v, heads // kv_heads, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size)
        seen = distance >= 0
        if sliding:
            seen &= distance < model.number("attention.sliding_window")
        scores = np.where(seen, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        h = product(np.einsum("hqk,khd->qhd", shares, v).reshape(count, -1), "attn_output")
        x = x + (norm(h, "post_attention_norm") if gemma else h)

        h = norm(x, "ffn_norm")
        gate, up = product(h, "ffn_gate"), product(h, "ffn_up")
        gate = gelu(gate, gelu_f16) if gemma else gate / (1 + np.exp(-gate))
        h = product(gate * up, "ffn_down")
        x = x + (norm(h, "post_ffw_norm") if gemma else h)
    x = rms_norm(x, w["output_norm.weight"], epsilon)
    return activations(x) @ w.get("output.weight", w["token_embd.weight"]).T


def read_golden(path):
    """Token ids, positions, and per position (ids, reference, its rest, peer, its rest), all as logs."""
    data = open(path, "rb").read()
    at = 12 + struct.unpack_from("<I", data, 8)[0]
    vocab, tokens, kept, top = struct.unpack_from("<4I", data, at)
    at += 16

    def take(count, kind):
        nonlocal at
        at += 4 * count
        return np.frombuffer(data, kind, count, at - 4 * count)

    token_ids, positions, rows = take(tokens, "<u4"), take(kept, "<u4"), []
    for _ in range(kept):
        take(2, "<u4")
        rest = take(2, "<f4").astype(float)
        ids = np.arange(vocab) if top == vocab else take(top, "<u4")
        rows.append((ids, take(top, "<f4").astype(float), rest[0], take(top, "<f4").astype(float), rest[1]))
    return token_ids, positions, rows


def bucketed_kl(p, p_rest, q, q_rest):
    rest = np.exp(p_rest) * (p_rest - q_rest) if np.isfinite(p_rest) else 0.0
    return (np.exp(p) * (p - q)).sum() + rest


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("model")
    arguments.add_argument("golden")
    arguments.add_argument("--gelu-f16", action="store_true")
    arguments.add_argument("--int8-block", type=int)
    o = arguments.parse_args()
    token_ids, positions, rows = read_golden(o.golden)
    activations = int8_rounding(o.int8_block) if o.int8_block else lambda x: x
    logits = forward(Model(o.model), token_ids, o.gelu_f16, activations)
    own, peer, agreed = [], [], 0
    for position, (ids, p, p_rest, q, q_rest) in zip(positions, rows):
        row = logits[position] - logits[position].max()
        row -= np.log(np.exp(row).sum())
        rest = np.log(max(1 - np.exp(row[ids]).sum(), 1e-300))
        own.append(bucketed_kl(p, p_rest, row[ids], rest))
        peer.append(bucketed_kl(p, p_rest, q, q_rest))
        agreed += row.argmax() == ids[p.argmax()]
    print(
        f"KL mean {np.mean(own):.3e} worst {np.max(own):.1e}, llama.cpp {np.mean(peer):.3e}, "
        f"ratio {np.mean(own) / np.mean(peer):.2f}, top-1 {agreed / len(rows):.3f}"
    )


if __name__ == "__main__":
    main()
