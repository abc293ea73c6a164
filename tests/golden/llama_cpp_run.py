"""Runs a GGUF through llama.cpp and returns the logits of every position. Used by make_logits.py and make_tiny.py.

Needs the packages `llama-cpp-python` (0.3.36 was used) and `numpy`. The low-level interface is used because it lets us
choose the KV cache's types and see every position. LLAMA_CPP_LIB_PATH may name a folder with a libllama built apart.
"""

import contextlib
import ctypes

import llama_cpp
import numpy as np

_QUIET = llama_cpp.llama_log_callback(lambda level, text, data: None)


@contextlib.contextmanager
def open_model(path):
    llama_cpp.llama_log_set(_QUIET, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    if not model:
        raise SystemExit(f"llama.cpp cannot load {path}")
    try:
        yield model
    finally:
        llama_cpp.llama_model_free(model)


def tokenise(model, text):
    """The text's token ids with whatever special tokens the model wants around a text."""
    vocab = llama_cpp.llama_model_get_vocab(model)
    data = text.encode()
    room = len(data) + 16
    tokens = (llama_cpp.llama_token * room)()
    count = llama_cpp.llama_tokenize(vocab, data, len(data), tokens, room, True, False)
    if count < 0:
        raise SystemExit("the text does not fit")
    return list(tokens[:count])


def logits(model, token_ids, exact, threads=2):
    """A float32 array [position, vocabulary].

    `exact` keeps K and V as F32 and switches flash attention off; otherwise llama.cpp's defaults hold (F16 K and V,
    flash attention where it can).
    """
    vocab_size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = max(256, len(token_ids))
    params.n_threads = params.n_threads_batch = threads
    if exact:
        params.type_k = params.type_v = llama_cpp.GGML_TYPE_F32
        params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    context = llama_cpp.llama_init_from_model(model, params)
    if not context:
        raise SystemExit("llama.cpp cannot make a context")
    batch = llama_cpp.llama_batch_init(len(token_ids), 0, 1)
    try:
        batch.n_tokens = len(token_ids)
        for i, token in enumerate(token_ids):
            batch.token[i] = token
            batch.pos[i] = i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = 1
        if llama_cpp.llama_decode(context, batch) != 0:
            raise SystemExit("llama.cpp cannot decode the prompt")
        rows = np.empty((len(token_ids), vocab_size), dtype=np.float32)
        for i in range(len(token_ids)):
            rows[i] = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, i), shape=(vocab_size,))
        return rows
    finally:
        llama_cpp.llama_batch_free(batch)
        llama_cpp.llama_free(context)
