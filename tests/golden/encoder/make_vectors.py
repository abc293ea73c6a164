#!/usr/bin/env python3
"""Vectors of a few texts by all-MiniLM-L6-v2, computed in f32 by ONNX Runtime: what the engine's encoder is held to.

usage: make_vectors.py MODEL_FOLDER > vectors.json      (needs: onnxruntime onnx tokenizers numpy safetensors)
"""
import json
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS, WIDTH, HEADS, MOST_TOKENS = 6, 384, 12, 256
TEXTS = [
    "When do I prune the apple tree?",
    "Bleed the radiators each autumn, beginning with the lowest floor; keep a cloth ready for the black water.",
    "hello",
    "",
    "The committee met on 14 March 2019 and decided, by seven votes to two, to postpone the renovation of the library.",
    "Was wurde in der Sitzung über die Heizung beschlossen? Größe, Straße, naïve café.",
    "東京都の人口は多いです。北京是中国的首都。",
    "fn main() { let x: Vec<u32> = (0..10).filter(|n| n % 2 == 0).collect(); println!(\"{x:?}\"); }",
    "supercalifragilisticexpialidocious 1234567890 https://example.org/a/b?c=d#e \U0001f600 e\u0301",
    "The lighthouse keeper wrote down the weather every evening. " * 12,
    "A very long text goes on and on about rivers, mountains, valleys, and the roads between them. " * 30,
]


def graph(w):
    nodes, constants = [], []

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(kind, inputs, **attributes):
        name = f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def linear(x, name):
        y = node("MatMul", [x, constant(name + ".w", w[name + ".weight"].T)])
        return node("Add", [y, constant(name + ".b", w[name + ".bias"])])

    def norm(x, name):
        scale, bias = constant(name + ".s", w[name + ".weight"]), constant(name + ".b", w[name + ".bias"])
        return node("LayerNormalization", [x, scale, bias], axis=-1, epsilon=1e-12)

    split = constant("split", np.array([1, -1, HEADS, WIDTH // HEADS]))
    joined = constant("joined", np.array([1, -1, WIDTH]))
    root = constant("root", np.array(np.sqrt(WIDTH // HEADS), np.float32))
    x = node("Gather", [constant("words", w["embeddings.word_embeddings.weight"]), "ids"])
    x = node("Add", [x, node("Gather", [constant("places", w["embeddings.position_embeddings.weight"]), "places_ids"])])
    x = node("Add", [x, constant("kind", w["embeddings.token_type_embeddings.weight"][0])])
    x = norm(x, "embeddings.LayerNorm")
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        q, k, v = (node("Reshape", [linear(x, at + "attention.self." + n), split]) for n in ("query", "key", "value"))
        q, v = (node("Transpose", [t], perm=[0, 2, 1, 3]) for t in (q, v))
        k = node("Transpose", [k], perm=[0, 2, 3, 1])
        p = node("Softmax", [node("Div", [node("MatMul", [q, k]), root])], axis=-1)
        a = node("Reshape", [node("Transpose", [node("MatMul", [p, v])], perm=[0, 2, 1, 3]), joined])
        x = norm(node("Add", [linear(a, at + "attention.output.dense"), x]), at + "attention.output.LayerNorm")
        h = node("Gelu", [linear(x, at + "intermediate.dense")], approximate="none")
        x = norm(node("Add", [linear(h, at + "output.dense"), x]), at + "output.LayerNorm")
    nodes[-1].output[0] = "out"
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, [1, None]) for n in ("ids", "places_ids")]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, None, WIDTH])
    made = helper.make_graph(nodes, "bert", inputs, [out], constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def main(folder):
    session = onnxruntime.InferenceSession(graph(load_file(folder + "/model.safetensors")).SerializeToString())
    tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(MOST_TOKENS)
    rows = []
    for text in TEXTS:
        ids = np.array([tokenizer.encode(text).ids])
        places = np.arange(ids.shape[1])[None]
        mean = session.run(["out"], {"ids": ids, "places_ids": places})[0][0].mean(axis=0)
        rows.append({"text": text, "tokens": ids.shape[1], "vector": [float(f"{v:.6f}") for v in mean / np.linalg.norm(mean)]})
    body = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    print('{"texts":[\n' + body + "\n]}")


main(sys.argv[1])
