"""Makes tiny GGUF files with random weights, one F32 and one quantised for each architecture, and their golden logits.

Usage, with the packages `llama-cpp-python` (0.3.36), `gguf` (0.19.0) and `numpy` installed:

    python make_tiny.py [--models tiny] [--logits logits]

The files are for tests of the engine: small enough for git, yet every feature of the real architecture is in them.

| file | what it exercises |
| --- | --- |
| qwen3 | q/k norm, head_dim apart from d / heads (32 in F32, 128 quantised), tied output; quantised: every type once |
| llama3 | rope_freqs.weight as Llama 3.x has it, untied output, head_dim 64; quantised: a Q4_K / Q6_K mix |
| qwen2 | biases on q, k, v, some of them large; quantised: a Q5_0 / Q8_0 mix |
| gemma3 | seven layers (five sliding, one global, one sliding), window 64, post norms, embedding scale, two rope bases |

Weights are scaled so that scores and logits have a spread like a trained model's: nothing is near uniform. The seeds
are fixed. K-quants and IQ4_NL blocks are made by the ggml library that llama-cpp-python brings, the rest by `gguf`.
"""

import argparse
import collections
import ctypes
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import llama_cpp
import numpy as np
from gguf.quants import quantize

import make_logits

HERE = Path(__file__).parent
VOCAB = 384
T = gguf.GGMLQuantizationType
KIND = gguf.TokenType

ALL_QUANTISED = [
    T.Q4_K, T.Q6_K, T.Q5_0, T.Q8_0, T.Q4_1, T.Q2_K, T.IQ4_NL,
    T.Q5_K, T.Q3_K, T.Q4_0, T.Q5_1, T.F16, T.MXFP4, T.BF16,
]  # fmt: skip


@dataclass
class Shape:
    architecture: str
    layers: int
    d: int
    heads: int
    kv_heads: int
    head_dim: int
    ff: int
    rope_base: float
    seed: int
    tied: bool = True
    # Type of matrix number n of the layers, in the order of make_weights.
    layer_types: list = field(default_factory=lambda: [T.F32])
    embedding_type: T = T.F32
    output_type: T = T.F32


SHAPES = {
    "qwen3-f32": Shape("qwen3", 2, 64, 4, 2, 32, 160, 1e6, 1),
    "llama3-f32": Shape("llama", 2, 64, 2, 1, 64, 192, 5e5, 2, tied=False),
    "qwen2-f32": Shape("qwen2", 2, 64, 4, 2, 16, 192, 1e6, 3),
    "gemma3-f32": Shape("gemma3", 7, 64, 2, 1, 32, 64, 1e6, 4),
    "qwen3-mixed": Shape("qwen3", 2, 256, 2, 1, 128, 256, 1e6, 5, layer_types=ALL_QUANTISED, embedding_type=T.Q8_0),
    "llama3-q4_k": Shape(
        "llama", 2, 256, 4, 2, 64, 256, 5e5, 6, tied=False,
        layer_types=[T.Q4_K, T.Q4_K, T.Q6_K, T.Q4_K, T.Q4_K, T.Q4_K, T.Q6_K],
        embedding_type=T.Q4_K, output_type=T.Q6_K,
    ),
    "qwen2-q5_0": Shape(
        "qwen2", 2, 256, 4, 1, 64, 256, 1e6, 7,
        layer_types=[T.Q5_0, T.Q5_0, T.Q8_0, T.Q5_0, T.Q5_0, T.Q5_0, T.Q6_K],
        embedding_type=T.Q5_0,
    ),
    "gemma3-mixed": Shape(
        "gemma3", 7, 256, 4, 1, 64, 256, 1e6, 8,
        layer_types=ALL_QUANTISED[:9] + [T.Q4_0, T.Q5_1, T.Q4_K, T.Q3_K],
        embedding_type=T.Q6_K,
    ),
}  # fmt: skip

SLIDING_WINDOW = 64


# Tokenizers


def byte_symbols():
    """The visible character that byte-level BPE writes for each byte."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in visible]
    symbols = {b: chr(b) for b in visible}
    symbols.update({b: chr(256 + i) for i, b in enumerate(hidden)})
    return [symbols[b] for b in range(256)]


def learn_merges(words, count):
    """The `count` most frequent pairs, merged one after another; ties go to the smaller pair."""
    words = collections.Counter(tuple(word) for word in words)
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        merged = collections.Counter()
        for word, times in words.items():
            parts = []
            for symbol in word:
                if parts and (parts[-1], symbol) == best:
                    parts[-1] += symbol
                else:
                    parts.append(symbol)
            merged[tuple(parts)] += times
        words = merged
    return merges


def add_bpe(writer, text, pre):
    control = ["<|start|>", "<|end|>", "<|pad|>", "<|turn|>"]
    symbols = byte_symbols()
    words = ["".join(symbols[b] for b in (" " + word).encode()) for word in text.split()]
    merges = learn_merges(words, VOCAB - 256 - len(control))
    tokens = symbols + [a + b for a, b in merges] + control
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([KIND.NORMAL] * (VOCAB - len(control)) + [KIND.CONTROL] * len(control))
    writer.add_token_merges([f"{a} {b}" for a, b in merges])
    writer.add_bos_token_id(VOCAB - 4)
    writer.add_eos_token_id(VOCAB - 3)
    writer.add_pad_token_id(VOCAB - 2)
    writer.add_add_bos_token(pre == "llama-bpe")


def add_sentencepiece(writer, text):
    words = ["\u2581" + word for word in text.split()]
    letters = sorted(set("".join(words)))
    head = ["<pad>", "<eos>", "<bos>", "<unk>"]
    head_kinds = [KIND.CONTROL, KIND.CONTROL, KIND.CONTROL, KIND.UNKNOWN]
    byte_tokens = [f"<0x{b:02X}>" for b in range(256)]
    merges = learn_merges(words, VOCAB - len(head) - 256 - len(letters))
    pieces = [a + b for a, b in merges] + letters
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(head + byte_tokens + pieces)
    writer.add_token_scores([0.0] * (len(head) + 256) + [-float(i) for i in range(len(pieces))])
    writer.add_token_types(head_kinds + [KIND.BYTE] * 256 + [KIND.NORMAL] * len(pieces))
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)


# Weights


def llama3_rope_factors(shape, factor=32.0, low=1.0, high=4.0, original=8192):
    """What each rope frequency is divided by: nothing for short waves, `factor` for long ones, a blend between."""
    factors = []
    for i in range(0, shape.head_dim, 2):
        wavelength = 2 * math.pi * shape.rope_base ** (i / shape.head_dim)
        if wavelength < original / high:
            factors.append(1.0)
        elif wavelength > original / low:
            factors.append(factor)
        else:
            blend = (original / wavelength - low) / (high - low)
            factors.append(1.0 / ((1.0 - blend) / factor + blend))
    return np.array(factors, dtype=np.float32)


def make_weights(shape):
    """Yields (name, values, type); matrices are [outputs, inputs]."""
    rng = np.random.default_rng(shape.seed)
    types = iter(shape.layer_types * (shape.layers * 7))

    def matrix(outputs, inputs, gain=1.0):
        return rng.normal(0, gain / math.sqrt(inputs), (outputs, inputs)).astype(np.float32)

    def around(mean, size, spread=0.1):
        return (mean + rng.normal(0, spread, size)).astype(np.float32)

    def vocabulary(length):
        """One row a token, of very different lengths, so that some tokens stand out as in trained models."""
        lengths = length * np.exp(rng.normal(0, 0.6, (VOCAB, 1)) - 0.18)
        return (matrix(VOCAB, d) * lengths).astype(np.float32)

    d, q_rows, kv_rows = shape.d, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    gemma, per_head_norm = shape.architecture == "gemma3", shape.architecture in ("qwen3", "gemma3")
    # A tied embedding also is the output matrix: rows of length 3 give logits with a spread of about 3. Random signs in
    # the last norm keep Gemma, whose scaled embeddings dominate the residual stream, from repeating its input.
    yield "token_embd.weight", vocabulary(2.2), shape.embedding_type
    output_norm = around(1.0, d)
    yield "output_norm.weight", output_norm * rng.choice([-1, 1], d).astype(np.float32) if gemma else output_norm, T.F32
    if not shape.tied:
        yield "output.weight", vocabulary(2.2), shape.output_type
    if shape.architecture == "llama":
        yield "rope_freqs.weight", llama3_rope_factors(shape), T.F32
    for layer in range(shape.layers):
        blk = f"blk.{layer}."
        yield blk + "attn_norm.weight", around(1.0, d), T.F32
        yield blk + "attn_q.weight", matrix(q_rows, d), next(types)
        yield blk + "attn_k.weight", matrix(kv_rows, d), next(types)
        yield blk + "attn_v.weight", matrix(kv_rows, d), next(types)
        if shape.architecture == "qwen2":
            yield blk + "attn_q.bias", around(0.0, q_rows, 0.5), T.F32
            key_bias = around(0.0, kv_rows, 0.5)
            key_bias[:: shape.head_dim // 4] *= 12
            yield blk + "attn_k.bias", key_bias, T.F32
            yield blk + "attn_v.bias", around(0.0, kv_rows, 0.2), T.F32
        if per_head_norm:
            yield blk + "attn_q_norm.weight", around(1.4, shape.head_dim), T.F32
            yield blk + "attn_k_norm.weight", around(1.4, shape.head_dim), T.F32
        yield blk + "attn_output.weight", matrix(d, q_rows), next(types)
        if gemma:
            yield blk + "post_attention_norm.weight", around(1.5, d), T.F32
        yield blk + "ffn_norm.weight", around(1.0, d), T.F32
        yield blk + "ffn_gate.weight", matrix(shape.ff, d), next(types)
        yield blk + "ffn_up.weight", matrix(shape.ff, d), next(types)
        yield blk + "ffn_down.weight", matrix(d, shape.ff), next(types)
        if gemma:
            yield blk + "post_ffw_norm.weight", around(1.5, d), T.F32


def ggml_library():
    folder = Path(llama_cpp.llama_cpp._base_path)
    library = ctypes.CDLL(str(next(folder.glob("libggml-base.*"))))
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
    ]  # fmt: skip
    return library


def encode(values, ty):
    try:
        return quantize(values, ty)
    except NotImplementedError:
        rows, columns = values.shape
        block_len, block_bytes = gguf.GGML_QUANT_SIZES[ty]
        out = np.empty((rows, columns // block_len * block_bytes), dtype=np.uint8)
        source = np.ascontiguousarray(values, dtype=np.float32)
        written = ggml_library().ggml_quantize_chunk(
            int(ty), source.ctypes.data, out.ctypes.data, 0, rows, columns, None
        )
        assert written == out.nbytes
        return out


def write_model(path, name, shape, text):
    writer = gguf.GGUFWriter(str(path), shape.architecture)
    writer.add_name(f"Tiny random {name}")
    writer.add_block_count(shape.layers)
    writer.add_context_length(4096)
    writer.add_embedding_length(shape.d)
    writer.add_feed_forward_length(shape.ff)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(1e-6 if shape.architecture != "llama" else 1e-5)
    if shape.architecture == "llama":
        writer.add_vocab_size(VOCAB)
        writer.add_rope_dimension_count(shape.head_dim)
        add_bpe(writer, text, "llama-bpe")
    elif shape.architecture == "gemma3":
        writer.add_sliding_window(SLIDING_WINDOW)
        add_sentencepiece(writer, text)
    else:
        add_bpe(writer, text, "qwen2")
    for tensor, values, ty in make_weights(shape):
        writer.add_tensor(tensor, encode(values, ty) if values.ndim == 2 else values, raw_dtype=ty)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--models", type=Path, default=HERE / "tiny", help="folder for the GGUF files")
    arguments.add_argument("--logits", type=Path, default=HERE / "logits", help="folder for the golden files")
    o = arguments.parse_args()
    text = (HERE / "prompt.txt").read_text()
    for name, shape in SHAPES.items():
        path = o.models / f"tiny-{name}.gguf"
        write_model(path, name, shape, text)
        # F32 must agree to 1e-4: keep the whole vocabulary. Quantised files are judged by top-1 too: keep all positions.
        top, every = (VOCAB, 4) if shape.output_type == shape.embedding_type == T.F32 else (64, 1)
        out = o.logits / f"tiny-{name}.golden"
        numbers = make_logits.make(path, out, text, tokens=200, top=top, every=every)
        print(json.dumps(numbers), flush=True)


if __name__ == "__main__":
    main()
