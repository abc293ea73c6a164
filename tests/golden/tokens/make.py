"""Makes tokens.json, the token ids that llama.cpp gives the texts of corpus.json for every vocabulary and pre-tokeniser the
Rust tests hold against, and chats.json, the prompts that Jinja makes of the chats below with the models' own templates.
Run it again after changing either:

    LLAMA_CPP_LIB_PATH=<folder of libllama> python make.py [folder of models [folder of another corpus.json]]

Needs the packages `llama-cpp-python` (0.3.36 was used) and `jinja2`. Models are those of models/fetch. A vocabulary is also tried with
pre-tokenisers that are not its own, so that one small model is enough to test them all.
"""

import ctypes
import json
import pathlib
import sys

import jinja2.sandbox
import llama_cpp

HERE = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).parent
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
QWEN = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
GEMMA = "gemma-3-270m-q4_k_m.gguf"
PRES = ["smollm", "qwen2", "llama-bpe", "gpt-2", "qwen35"]
CASES = [(model, {"tokenizer.ggml.pre": pre}) for model in (SMOLLM2, QWEN) for pre in PRES]
CASES += [(GEMMA, {}), (GEMMA, {"tokenizer.ggml.add_space_prefix": True})]

TALK = [
    ("user", "How do herons fish?"),
    ("assistant", "They stand still.\n\n- then *strike*"),
    ("user", "  Thanks!  \nWhat about 1234 egrets — 白鷺 🐦? "),
]
CHATS = [
    TALK[:1],
    TALK,
    [("system", "You are terse.")] + TALK,
    [("system", "")] + TALK[:1],
    [("user", "")],
    [("user", "if a < b && c > d { x[i] |= 1 } // <|not a token|> <im_end>")],
    [("user", "Is <0x0A> a <b>tag</b>? x <| y |> z <")],
]

_QUIET = llama_cpp.llama_log_callback(lambda level, text, data: None)


def corpus():
    entries = json.loads((HERE / "corpus.json").read_text(encoding="utf-8"))
    return [entry.get("text", "") + entry.get("repeat", ["", 0])[0] * entry.get("repeat", ["", 0])[1] for entry in entries]


def overrides_for(values):
    """llama.cpp's way of reading a file as if its metadata said something else; ends with an empty entry."""
    entries = (llama_cpp.llama_model_kv_override * (len(values) + 1))()
    for entry, (key, value) in zip(entries, values.items()):
        entry.key = key.encode()
        if isinstance(value, bool):
            entry.tag = llama_cpp.LLAMA_KV_OVERRIDE_TYPE_BOOL
            entry.value.val_bool = value
        else:
            entry.tag = llama_cpp.LLAMA_KV_OVERRIDE_TYPE_STR
            entry.value.val_str = value.encode()
    return entries


def tokenise(vocab, text, add_special, parse_special):
    data = text.encode("utf-8")
    room = 4 * len(data) + 16
    tokens = (llama_cpp.llama_token * room)()
    count = llama_cpp.llama_tokenize(vocab, data, len(data), tokens, room, add_special, parse_special)
    assert count >= 0, text
    return list(tokens[:count])


def piece(vocab, token):
    room = 1024
    buffer = ctypes.create_string_buffer(room)
    count = llama_cpp.llama_token_to_piece(vocab, token, buffer, room, 0, True)
    assert count >= 0
    return buffer.raw[:count]


def fnv1a(chunks):
    """64-bit FNV-1a of the chunks, each followed by its length as one more byte."""
    value = 0xCBF29CE484222325
    for chunk in chunks:
        for byte in chunk + bytes([len(chunk) & 0xFF]):
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def measure(path, overrides, texts):
    entries = overrides_for(overrides)
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    params.kv_overrides = entries
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    assert model, path
    vocab = llama_cpp.llama_model_get_vocab(model)
    size = llama_cpp.llama_vocab_n_tokens(vocab)
    ids = []
    for text in texts:
        plain = tokenise(vocab, text, False, False)
        parsed = tokenise(vocab, text, False, True)
        ids.append([plain] if plain == parsed else [plain, parsed])
    result = {
        "size": size,
        "ends": [token for token in range(size) if llama_cpp.llama_vocab_is_eog(vocab, token)],
        "control": fnv1a([bytes([llama_cpp.llama_vocab_is_control(vocab, token)]) for token in range(size)]),
        "pieces": fnv1a([piece(vocab, token) for token in range(size)]),
        "document": tokenise(vocab, "Hello", True, False),
        "ids": ids,
    }
    llama_cpp.llama_model_free(model)
    return result


def chats(path):
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    vocab = llama_cpp.llama_model_get_vocab(model)
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(llama_cpp.llama_model_chat_template(model, None).decode())
    results = []
    for chat in CHATS:
        messages = [{"role": role, "content": content} for role, content in chat]
        for ask in (True, False):
            prompt = template.render(messages=messages, add_generation_prompt=ask, tools=None, documents=None)
            ids = tokenise(vocab, prompt, False, True)
            results.append({"model": path.name, "messages": chat, "ask": ask, "prompt": prompt, "ids": ids})
    llama_cpp.llama_model_free(model)
    return results


def write(name, values):
    lines = ",\n".join(json.dumps(value, separators=(",", ":")) for value in values)
    (HERE / name).write_text("[\n" + lines + "\n]\n", encoding="utf-8")


def main():
    models = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path.home() / ".cache/reprise/models")
    llama_cpp.llama_log_set(_QUIET, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    texts = corpus()
    cases = []
    for model, overrides in CASES:
        case = {"model": model, "pre": overrides.get("tokenizer.ggml.pre")}
        case["space_prefix"] = overrides.get("tokenizer.ggml.add_space_prefix")
        cases.append(case | measure(models / model, overrides, texts))
        print(model, overrides, sum(len(ids[0]) for ids in cases[-1]["ids"]), "tokens", flush=True)
    write("tokens.json", cases)
    write("chats.json", [chat for model in (SMOLLM2, QWEN) for chat in chats(models / model)])


if __name__ == "__main__":
    main()
