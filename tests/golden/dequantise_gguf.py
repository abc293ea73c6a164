"""Writes a GGUF with every tensor as F32 and everything else as it was.

Usage, with the packages `gguf` and `numpy` installed:

    python dequantise_gguf.py IN.gguf OUT.gguf

The result holds exactly the numbers that the quantised file stands for, so running it shows what the file's weights
say when no kernel rounds anything on the way.
"""

import argparse

import gguf
import numpy as np
from gguf.quants import dequantize


def copy_metadata(reader, writer):
    """Copies every key except those the writer makes itself."""
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, element)


def dequantise(source, target):
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
    copy_metadata(reader, writer)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        writer.add_tensor_info(tensor.name, values.shape, values.dtype, values.nbytes)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    # One tensor at a time: the whole model as F32 need not fit in memory.
    for tensor in reader.tensors:
        writer.write_tensor_data(dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False))
    writer.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("source")
    arguments.add_argument("target")
    options = arguments.parse_args()
    dequantise(options.source, options.target)


if __name__ == "__main__":
    main()
