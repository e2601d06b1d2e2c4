#!/usr/bin/env python3
"""Text to token ids and back with a model's tokenizer.json. Needs the package `tokenizers` and nothing else.

    tokenize.py file --tokenizer tokenizer.json --text FILE [--cache DIR]
        writes llm.c token files into the cache, unless they are there; prints {"files": [...], "tokens": N}
    tokenize.py encode --tokenizer tokenizer.json    text on standard input -> [ids], special tokens added
    tokenize.py decode --tokenizer tokenizer.json    [ids] on standard input -> text, special tokens left out

Exit codes: 65 the text or the tokenizer is at fault, 69 the package is missing.
"""
import argparse
import fcntl
import hashlib
import json
import os
import struct
import sys
from array import array

TOOL_VERSION = 1
PART_TOKENS = 1 << 30  # llm.c counts in int32
# Longer texts are encoded in pieces, cut at a line end between two characters that are not blank:
# there the usual pre-tokenizers cut, too.
PIECE_BYTES = 64 << 20


def fail(code, message):
    sys.stderr.write(message + "\n")
    sys.exit(code)


def import_tokenizers():
    sys.path[:] = [p for p in sys.path if p]  # not the working directory
    try:
        import tokenizers
    except ImportError as error:
        fail(69, "the Python package `tokenizers` is missing (%s); install it with"
                 " `pip install tokenizers`, or name a Python that has it with --python PROGRAM" % error)
    return tokenizers


def open_tokenizer(tokenizers, path):
    try:
        return tokenizers.Tokenizer.from_file(path)
    except Exception as error:  # the package raises bare Exception
        fail(65, "%s: not a tokenizer: %s" % (path, error))


def is_cut(text, i):
    """Whether a piece may end before text[i]."""
    return 2 <= i < len(text) and text[i - 1] == 0x0A and text[i - 2] not in b" \t\r\n" and text[i] not in b" \t\r\n"


def pieces(text):
    begin = 0
    while len(text) - begin > PIECE_BYTES:
        end = begin + PIECE_BYTES
        while end > begin and not is_cut(text, end):
            end = text.rfind(b"\n", begin, end - 1) + 1
        if end <= begin:
            break
        yield text[begin:end]
        begin = end
    yield text[begin:]


def decode_text(data, offset, name):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        fail(65, "%s: not UTF-8 at byte %d (%s); convert the text" % (name, offset + error.start, error.reason))


def read_bytes(path, kind):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        fail(65, "%s: cannot read the %s: %s" % (path, kind, error.strerror))


class PartWriter:
    """Token files PREFIX-00000.bin and so on, each complete when its name appears."""

    def __init__(self, prefix, wide):
        self.prefix, self.wide, self.files, self.total = prefix, wide, [], 0
        self.file, self.count = None, 0

    def write(self, ids):
        done = 0
        while done < len(ids):
            if self.file is None:
                self.file, self.count = open(self.prefix + ".tmp", "wb"), 0
                self.file.write(bytes(1024))
            take = ids[done:done + PART_TOKENS - self.count]
            self.file.write(array("I" if self.wide else "H", take).tobytes())
            self.count += len(take)
            done += len(take)
            if self.count == PART_TOKENS:
                self.close()

    def close(self):
        if self.file is None:
            return
        magic, version = (20240801, 7) if self.wide else (20240520, 1)
        self.file.seek(0)
        self.file.write(struct.pack("<3i", magic, version, self.count))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        name = "%s-%05d.bin" % (self.prefix, len(self.files))
        os.rename(self.prefix + ".tmp", name)
        self.files.append(name)
        self.total += self.count
        self.file = None


def cached(listing):
    """What an earlier run wrote, if all of it is still there."""
    try:
        with open(listing) as file:
            answer = json.load(file)
        whole = all(os.path.getsize(name) == size for name, size in zip(answer["files"], answer["sizes"]))
        return answer if whole else None
    except (OSError, ValueError, KeyError):
        return None


def encode_file(arguments):
    tokenizers = import_tokenizers()
    text = read_bytes(arguments.text, "text")
    if not text:
        fail(65, "%s: the data file is empty, expected text" % arguments.text)
    key = hashlib.blake2b(digest_size=16)
    for part in (text, read_bytes(arguments.tokenizer, "tokenizer"), tokenizers.__version__.encode(), b"%d" % TOOL_VERSION):
        key.update(b"%d:" % len(part) + part)
    try:
        os.makedirs(arguments.cache, exist_ok=True)
        prefix = os.path.join(os.path.abspath(arguments.cache), key.hexdigest())
        with open(prefix + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            answer = cached(prefix + ".json") or write_parts(tokenizers, arguments, text, prefix)
    except OSError as error:
        fail(74, "%s: cannot use the token cache: %s; name another folder" % (arguments.cache, error))
    print(json.dumps(answer))


def write_parts(tokenizers, arguments, text, prefix):
    tokenizer = open_tokenizer(tokenizers, arguments.tokenizer)
    writer = PartWriter(prefix, max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0) > 65535)
    offset = 0
    for piece in pieces(text):
        writer.write(tokenizer.encode(decode_text(piece, offset, arguments.text), add_special_tokens=False).ids)
        offset += len(piece)
    writer.close()
    if not writer.files:
        fail(65, "%s: the tokenizer makes no token of this text" % arguments.text)
    answer = {"files": writer.files, "sizes": [os.path.getsize(name) for name in writer.files], "tokens": writer.total}
    with open(prefix + ".json.tmp", "w") as file:
        json.dump(answer, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(prefix + ".json.tmp", prefix + ".json")
    return answer


def encode(arguments):
    tokenizer = open_tokenizer(import_tokenizers(), arguments.tokenizer)
    print(json.dumps(tokenizer.encode(decode_text(sys.stdin.buffer.read(), 0, "the prompt")).ids))


def decode(arguments):
    tokenizer = open_tokenizer(import_tokenizers(), arguments.tokenizer)
    ids = json.load(sys.stdin)
    sys.stdout.buffer.write(tokenizer.decode(ids, skip_special_tokens=True).encode("utf-8", "replace"))


def main():
    parser = argparse.ArgumentParser(prog="tokenize.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["file", "encode", "decode"])
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--text")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    parser.add_argument("--cache", default=os.path.join(base, "strata", "tokens"))
    arguments = parser.parse_args()
    if arguments.mode == "file" and arguments.text is None:
        parser.error("file needs --text")
    {"file": encode_file, "encode": encode, "decode": decode}[arguments.mode](arguments)


if __name__ == "__main__":
    main()
