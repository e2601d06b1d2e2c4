"""Writes safetensors files with aligned data, in shards, and hashes their blocks on the way."""
import json
import math
import os

ALIGNMENT_BYTES = 4096       # place of the data in a file
BLOCK_BYTES = 1 << 20        # bytes under one hash
SHARD_BYTES = 5_000_000_000  # tensors in a file; a larger tensor gets a file of its own


class Entry:
    """A tensor to be written. `load` returns its bytes when its turn comes; `dtype` is safetensors' name ("BF16")."""

    def __init__(self, name, dtype, shape, load):
        self.name, self.dtype, self.shape, self.load = name, dtype, list(shape), load

    def size_bytes(self):
        item = 1 if self.dtype == "BOOL" else int(self.dtype.strip("BFIU")) // 8
        return math.prod(self.shape) * item


def make_header(entries):
    """Returns length, JSON, and spaces up to the beginning of the data."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for entry in entries:
        end = offset + entry.size_bytes()
        header[entry.name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT_BYTES)
    return len(text).to_bytes(8, "little") + text


def split_shards(entries, limit_bytes=SHARD_BYTES):
    shards, size = [[]], 0
    for entry in entries:
        if shards[-1] and size + entry.size_bytes() > limit_bytes:
            shards.append([])
            size = 0
        shards[-1].append(entry)
        size += entry.size_bytes()
    return shards


def shard_name(base, index, count):
    return "%s.safetensors" % base if count == 1 else "%s-%05d-of-%05d.safetensors" % (base, index + 1, count)


class HashedFile:
    """Writes a new file. `make_hash` begins the hash of a block; without it nothing is hashed."""

    def __init__(self, path, make_hash=None):
        self.file, self.make_hash = open(path, "xb"), make_hash
        self.hashes, self.size = [], 0
        self._block, self._in_block = None, 0

    def write(self, data):
        self.file.write(data)
        self.size += len(data)
        data = memoryview(data)
        while self.make_hash and len(data):
            if self._block is None:
                self._block = self.make_hash()
            part = data[:BLOCK_BYTES - self._in_block]
            self._block.update(part)
            self._in_block += len(part)
            data = data[len(part):]
            if self._in_block == BLOCK_BYTES:
                self._end_block()

    def close(self):
        if self._block is not None:
            self._end_block()
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def _end_block(self):
        self.hashes.append(self._block.hexdigest())
        self._block, self._in_block = None, 0


def write_tensors(folder, base, entries, make_hash=None, limit_bytes=SHARD_BYTES):
    """Writes the files of one list; returns [(name, HashedFile)], and the text of their index, or None for a single file."""
    shards = split_shards(entries, limit_bytes)
    written, places = [], {}
    for index, shard in enumerate(shards):
        name = shard_name(base, index, len(shards))
        out = HashedFile(os.path.join(folder, name), make_hash)
        out.write(make_header(shard))
        for entry in shard:
            out.write(entry.load())
            places[entry.name] = name
        out.close()
        written.append((name, out))
    if len(shards) == 1:
        return written, None
    total = sum(entry.size_bytes() for entry in entries)
    return written, json.dumps({"metadata": {"total_size": total}, "weight_map": places}, indent=2) + "\n"


def index_name(base):
    return base + ".safetensors.index.json"
