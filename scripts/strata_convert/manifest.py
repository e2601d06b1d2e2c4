"""Writes and reads manifest.json (docs/formats/checkpoint.md). `hash_of` turns bytes into 32 hexadecimal digits."""
import json
import re

from refused import Refused
from tensor_files import BLOCK_BYTES

VERSION = 1


def make_manifest(step, facts, block_files, whole_files, hash_of):
    """Returns the file's bytes from `block_files`, [(name, HashedFile)], and `whole_files`, {name: bytes}."""
    body = json.dumps({
        "strata_checkpoint": VERSION, "step": step, "facts": facts, "block_bytes": BLOCK_BYTES,
        "block_files": [{"name": name, "bytes": file.size, "block_hashes": "".join(file.hashes)}
                        for name, file in block_files],
        "whole_files": [{"name": name, "bytes": len(data), "hash": hash_of(data)} for name, data in whole_files.items()],
    }, indent=2)
    body = body[:-2].encode()  # without "\n}"
    return body + b',\n  "manifest_hash": "' + hash_of(body).encode() + b'"\n}\n'


def parse_manifest(data, path, hash_of):
    seal = re.search(rb',\n  "manifest_hash": "([0-9a-f]{32})"\n}\n\Z', data)
    if not seal or hash_of(data[:seal.start()]) != seal.group(1).decode():
        raise Refused("%s: truncated or changed; use another checkpoint" % path)
    manifest = json.loads(data)
    if manifest.get("strata_checkpoint") != VERSION:
        raise Refused("%s: format version %s, this script reads version %d" % (
            path, manifest.get("strata_checkpoint"), VERSION))
    return manifest
