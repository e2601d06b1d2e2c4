"""Makes entries of safetensors files from PyTorch's tensors."""
import torch

from refused import Refused
from tensor_files import Entry

# Types of safetensors, and their names in torch.
DTYPES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64", "I64": "int64", "I32": "int32",
          "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool"}


def dtype_name(dtype):
    """Returns the name of a type: "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def stored_dtype(dtype, tensor_name):
    for stored, known in DTYPES.items():
        if known == dtype_name(dtype):
            return stored
    raise Refused("tensor '%s' has type %s, which cannot be stored; convert it first" % (tensor_name, dtype_name(dtype)))


def tensor_entry(name, dtype, shape, load):
    """Makes an entry; `load` returns the tensor, which must have that torch type and shape."""
    def load_bytes():
        tensor = load().detach().contiguous()
        if tensor.shape != torch.Size(shape) or tensor.dtype != dtype:
            raise Refused("tensor '%s' is %s %s, expected %s %s" % (
                name, dtype_name(tensor.dtype), list(tensor.shape), dtype_name(dtype), list(shape)))
        return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())
    return Entry(name, stored_dtype(dtype, name), shape, load_bytes)
