"""Makes golden logits: what llama.cpp says about every next token of a fixed prompt.

Usage, with the packages `llama-cpp-python` (0.3.36), `gguf` (0.19.0) and `numpy` installed:

    python make_logits.py MODEL.gguf OUT.golden [--prompt prompt.txt] [--tokens 200] [--top 64] [--every 1]

Two runs are made and stored (format.md describes the file):

- the reference: MODEL's weights dequantised to F32 (dequantise_gguf.py), F32 K and V, no flash attention. No kernel
  rounds anything to fewer bits than F32 there.
- the peer: MODEL itself with llama.cpp's defaults, which is how people run it.

KL(reference || peer) is then llama.cpp's own distance from what the weights say, and the bar for our fast path. One
line of numbers is printed: a JSON object.
"""

import argparse
import hashlib
import json
import struct
import tempfile
from pathlib import Path

import llama_cpp
import numpy as np

from dequantise_gguf import dequantise
from llama_cpp_run import logits, open_model, tokenise

HERE = Path(__file__).parent


def log_softmax(rows):
    rows = rows.astype(np.float64)
    rows -= rows.max(axis=-1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=-1, keepdims=True))


def kl(p, q):
    """KL(p || q) in nats for each row of log-probabilities."""
    return (np.exp(p) * (p - q)).sum(axis=-1)


def top_and_rest(log_probs, ids):
    """Log-probabilities at `ids` and the log of the mass elsewhere, summed there and not as a difference from 1."""
    top = np.take_along_axis(log_probs, ids, axis=-1)
    others = np.exp(log_probs)
    np.put_along_axis(others, ids, 0.0, axis=-1)
    with np.errstate(divide="ignore"):
        return top, np.log(others.sum(axis=-1))


def bucketed_kl(ref, ref_rest, peer, peer_rest):
    total = (np.exp(ref) * (ref - peer)).sum(axis=-1)
    has_rest = np.isfinite(ref_rest)
    with np.errstate(invalid="ignore"):
        return total + np.where(has_rest, np.exp(ref_rest) * (ref_rest - peer_rest), 0.0)


def write_golden(path, about, token_ids, positions, ref, peer, top):
    """`ref` and `peer` are log-probabilities [position, vocabulary] of the chosen positions. Returns the bucketed KL."""
    vocab = ref.shape[1]
    top = min(top, vocab)
    dense = top == vocab
    ids = np.tile(np.arange(vocab), (len(ref), 1)) if dense else np.argsort(-ref, axis=-1, kind="stable")[:, :top]
    ref_top, ref_rest = top_and_rest(ref, ids)
    peer_top, peer_rest = top_and_rest(peer, ids)
    exact = kl(ref, peer)
    best = peer.argmax(axis=-1)
    with open(path, "wb") as out:
        text = json.dumps(about, sort_keys=True).encode()
        out.write(b"RPGOLD\x00\x01")
        out.write(struct.pack("<I", len(text)) + text)
        out.write(struct.pack("<4I", vocab, len(token_ids), len(positions), top))
        out.write(np.asarray(token_ids, "<u4").tobytes())
        out.write(np.asarray(positions, "<u4").tobytes())
        for i in range(len(positions)):
            out.write(struct.pack("<Ifff", best[i], exact[i], ref_rest[i], peer_rest[i]))
            if not dense:
                out.write(ids[i].astype("<u4").tobytes())
            out.write(ref_top[i].astype("<f4").tobytes())
            out.write(peer_top[i].astype("<f4").tobytes())
    return bucketed_kl(ref_top, ref_rest, peer_top, peer_rest)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make(model_path, out_path, prompt, tokens, top, every):
    with open_model(model_path) as model:
        token_ids = tokenise(model, prompt)[:tokens]
        if len(token_ids) < tokens:
            raise SystemExit(f"the prompt has {len(token_ids)} tokens, fewer than {tokens}")
        peer_all = log_softmax(logits(model, token_ids, exact=False))
        peer_f32_kv = log_softmax(logits(model, token_ids, exact=True))
    with tempfile.TemporaryDirectory() as folder:
        f32_path = Path(folder) / "f32.gguf"
        dequantise(model_path, f32_path)
        with open_model(f32_path) as model:
            ref_all = log_softmax(logits(model, token_ids, exact=True))
    positions = list(range(every - 1, tokens, every))
    about = {
        "model": Path(model_path).name,
        "model_sha256": sha256(model_path),
        "made_by": "llama-cpp-python " + llama_cpp.__version__,
        "reference": "weights dequantised to F32, F32 KV, no flash attention",
        "peer": "the file itself, default settings (F16 KV)",
    }
    ref, peer = ref_all[positions], peer_all[positions]
    bucketed = write_golden(out_path, about, token_ids, positions, ref, peer, top)
    exact = kl(ref, peer)
    following = np.array(token_ids[1:])
    return {
        "file": Path(out_path).name,
        "positions": len(positions),
        "peer_mean_kl": float(exact.mean()),
        "peer_mean_kl_bucketed": float(bucketed.mean()),
        "peer_max_kl": float(exact.max()),
        "peer_f32_kv_mean_kl": float(kl(ref, peer_f32_kv[positions]).mean()),
        "peer_top1_agreement": float((ref.argmax(-1) == peer.argmax(-1)).mean()),
        "reference_entropy": float(-(np.exp(ref) * ref).sum(-1).mean()),
        "reference_nll": float(-ref_all[:-1][np.arange(len(following)), following].mean()),
        "mean_rest_mass": float(np.exp(top_and_rest(ref, np.argsort(-ref, axis=-1)[:, :top])[1]).mean()),
        "bytes": Path(out_path).stat().st_size,
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("model")
    arguments.add_argument("out")
    arguments.add_argument("--prompt", type=Path, default=HERE / "prompt.txt", help="text file (default: prompt.txt)")
    arguments.add_argument("--tokens", type=int, default=200, help="prompt tokens used (default 200)")
    arguments.add_argument("--top", type=int, default=64, help="tokens kept per position (default 64)")
    arguments.add_argument("--every", type=int, default=1, help="keep every n-th position (default all)")
    o = arguments.parse_args()
    print(json.dumps(make(o.model, o.out, o.prompt.read_text(), o.tokens, o.top, o.every)), flush=True)


if __name__ == "__main__":
    main()
