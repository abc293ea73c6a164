"""Makes the golden vectors that hold the reference dequantisers and quantisers to the `gguf` Python package.

Usage, with the packages `gguf` (0.19.0) and `numpy` installed:

    python make.py [FOLDER]        # FOLDER defaults to this file's

For every tensor type it writes `TYPE.dequantize.bin`: n blocks of random bytes, then their n * block_len values as
little-endian f32. For the types with a plain quantiser it also writes `TYPE.quantize.bin`: the values first, as f32,
then the blocks. n follows from the file's length. The seed is fixed: same packages, same bytes.
"""

import sys
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

T = gguf.GGMLQuantizationType

# Type, and where its blocks keep f16 scales (random bytes there would mostly be absurd).
TYPES = [
    (T.F32, []),
    (T.F16, []),
    (T.BF16, []),
    (T.Q4_0, [0]),
    (T.Q4_1, [0, 2]),
    (T.Q5_0, [0]),
    (T.Q5_1, [0, 2]),
    (T.Q8_0, [0]),
    (T.Q2_K, [80, 82]),
    (T.Q3_K, [108]),
    (T.Q4_K, [0, 2]),
    (T.Q5_K, [0, 2]),
    (T.Q6_K, [208]),
    (T.IQ4_NL, [0]),
    (T.MXFP4, []),
]
QUANTIZERS = [T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0]

# Zero, smallest subnormal, largest subnormal, smallest normal, one, largest, each sign, infinity, NaN.
EXTREME_SCALES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0x7E00]


def blocks_for(ty, scale_offsets, rng):
    block_len, block_bytes = gguf.GGML_QUANT_SIZES[ty]
    count = 96 if block_len == 1 else 24 if block_len == 32 else 14
    blocks = rng.integers(0, 256, size=(count, block_bytes), dtype=np.uint8)
    for at in scale_offsets:
        scales = rng.normal(0, 0.05, size=count).astype(np.float16)
        scales[: len(EXTREME_SCALES)] = np.array(rng.permutation(EXTREME_SCALES), dtype=np.uint16).view(np.float16)
        blocks[:, at : at + 2] = scales.view(np.uint8).reshape(count, 2)
    if ty == T.MXFP4:
        exponents = np.r_[[0, 1, 2, 127, 254, 255], rng.integers(110, 140, size=count - 6)]
        blocks[:, 0] = exponents.astype(np.uint8)
    return blocks


def values_for(ty, rng):
    block_len, _ = gguf.GGML_QUANT_SIZES[ty]
    if block_len == 1:
        return rng.normal(0, 1, size=128).astype(np.float32) * np.float32(10.0) ** rng.integers(-9, 9, size=128)
    values = rng.normal(0, 1, size=(16, block_len)).astype(np.float32)
    values *= np.float32(10.0) ** rng.integers(-5, 4, size=(16, 1))
    values[0] = 0
    values[1] = 3.5
    values[2, 1:] = 0
    values[3] = np.abs(values[3])
    values[4] = -np.abs(values[4])
    values[5] = np.arange(32) - 16
    return values.reshape(-1)


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    rng = np.random.default_rng(20261130)
    np.seterr(all="ignore")
    for ty, scale_offsets in TYPES:
        blocks = blocks_for(ty, scale_offsets, rng)
        values = dequantize(blocks.reshape(1, -1), ty).astype("<f4")
        (folder / f"{ty.name}.dequantize.bin").write_bytes(blocks.tobytes() + values.tobytes())
    for ty in QUANTIZERS:
        values = values_for(ty, rng).astype("<f4")
        blocks = np.ascontiguousarray(quantize(values.reshape(1, -1), ty))
        (folder / f"{ty.name}.quantize.bin").write_bytes(values.tobytes() + blocks.tobytes())


if __name__ == "__main__":
    main()
