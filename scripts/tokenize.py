#!/usr/bin/env python3
"""Turns text into token ids and back with a model's tokenizer. Needs the package `tokenizers`; a tokenizer without tokenizer.json is
converted by `transformers`.

    tokenize.py texts --tokenizer PATH [--cache DIR] [--vocabulary N]    a JSON list of files on standard input
        writes llm.c token files of each text into the cache, unless they are there. Prints lines {"progress": ...} and last
        {"texts": [{"files": [...], "tokens": N}, ...], "end": {"id": N, "text": "...", "from": FILE} or null, "notes": [...]}
    tokenize.py encode --tokenizer PATH [--cache DIR]    text on standard input -> [ids], special tokens added
    tokenize.py decode --tokenizer PATH [--cache DIR]    [ids] on standard input -> text, special tokens left out

PATH is a tokenizer.json, or a folder with one, or with files from which one is made (vocab.json and merges.txt, tokenizer.model ...).
Exit codes: 65 a text or the tokenizer is at fault, 69 a package is missing, 74 the cache cannot be used.
"""
import argparse
import codecs
import fcntl
import hashlib
import json
import os
import re
import struct
import sys
import time
from array import array

TOOL_VERSION = 2
PART_TOKENS = 1 << 30  # llm.c counts in int32
# Encoding pieces of a text, several at once, bounds memory: an encoding takes a hundred bytes per token.
PIECE_CHARACTERS = 128 << 10
PIECES_AT_ONCE = 8
READ_BYTES = 1 << 20
# A piece may end after a line between two characters that are not blank, or else before a single blank. `lead` is put before the next
# piece, so that it does not count as the beginning of a text; the lead's tokens are dropped.
CUTS = [(re.compile(r"(?<=\S)\r?\n(?=\S)"), "end", "a\n"), (re.compile(r"(?<=\S) (?=\S)"), "start", "a")]
# A cut is taken only if the tokens around it are those of the uncut text.
WINDOW_CHARACTERS = 200
CUTS_TRIED = 20
LARGEST_CUTLESS_PIECE = 64 << 20
PROGRESS_SECONDS = 0.5
CONVERTED_FROM = ["vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model"]
SETTINGS = ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json"]


def fail(code, message):
    sys.stderr.write(message + "\n")
    sys.exit(code)


def install(packages):
    return "install it with `%s -m pip install %s`" % (sys.executable or "python3", packages)


def import_tokenizers():
    try:
        import tokenizers
    except ImportError as error:
        fail(69, "the Python package `tokenizers` is missing (%s); %s" % (error, install("tokenizers")))
    return tokenizers


def read_bytes(path, kind):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        fail(65, "%s: cannot read the %s: %s" % (path, kind, error.strerror))


def read_json(path):
    """Returns the object in a file, or {} if there is no such file or no object in it."""
    try:
        with open(path, "rb") as file:
            found = json.load(file)
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def unlimited(tokenizer):
    """Turns off the truncation and padding that tokenizer.json may ask for."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def hash_of(*parts):
    key = hashlib.blake2b(digest_size=16)
    for part in parts:
        key.update(b"%d:" % len(part) + part)
    return key


class Cache:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(os.path.abspath(self.folder), name)

    def make(self, name, known, produce):
        """Returns what `known` finds, or else what `produce` makes; a second caller waits until the first has made it."""
        try:
            os.makedirs(self.folder, exist_ok=True)
            with open(self.path(name + ".lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                found = known()
                return produce() if found is None else found
        except OSError as error:
            fail(74, "%s: cannot use the token cache: %s; name another folder with --token-cache DIR" % (self.folder, error))


def write_whole(path, text):
    with open(path + ".tmp", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)


def convert(tokenizers, folder, cache):
    """Returns the text of a tokenizer.json for a folder that has none."""
    sources = [name for name in CONVERTED_FROM if os.path.isfile(os.path.join(folder, name))]
    if not sources:
        fail(65, "%s: no tokenizer.json, and none of %s to make one of" % (folder, ", ".join(CONVERTED_FROM)))
    parts = [b"%d" % TOOL_VERSION, tokenizers.__version__.encode()]
    for name in sources + [name for name in SETTINGS if os.path.isfile(os.path.join(folder, name))]:
        parts += [name.encode(), read_bytes(os.path.join(folder, name), "tokenizer")]
    name = hash_of(*parts).hexdigest() + ".tokenizer.json"

    def known():
        return read_bytes(cache.path(name), "tokenizer").decode() if os.path.isfile(cache.path(name)) else None

    def produce():
        text = convert_with_transformers(folder, " and ".join(sources))
        write_whole(cache.path(name), text)
        return text
    return cache.make(name, known, produce)


def convert_with_transformers(folder, sources):
    os.environ["HF_HUB_OFFLINE"] = "1"
    needed = "transformers sentencepiece protobuf"
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        fail(69, "%s: has %s but no tokenizer.json, which the Python package `transformers` can make; it is missing (%s); %s" % (
            folder, sources, error, install(needed)))
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except ImportError as error:
        fail(69, "%s: no tokenizer.json can be made of %s: %s; %s" % (folder, sources, str(error).strip(), install(needed)))
    except Exception as error:  # a broken folder may raise anything
        fail(65, "%s: transformers makes no tokenizer of %s: %s" % (folder, sources, error))
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None:
        fail(65, "%s: transformers has no fast tokenizer for %s (%s)" % (folder, sources, type(tokenizer).__name__))
    return fast.to_str()


class Model:
    """A tokenizer, and the place that it comes from."""

    def __init__(self, path, cache):
        tokenizers = import_tokenizers()
        self.path = path
        self.folder = path if os.path.isdir(path) else os.path.dirname(path)
        whole = os.path.join(path, "tokenizer.json") if os.path.isdir(path) else path
        try:
            if os.path.isdir(path) and not os.path.isfile(whole):
                text = convert(tokenizers, path, cache)
                self.tokenizer = unlimited(tokenizers.Tokenizer.from_str(text))
                self.key = text.encode()
            else:
                self.key = read_bytes(whole, "tokenizer")
                self.tokenizer = unlimited(tokenizers.Tokenizer.from_file(whole))
        except Exception as error:  # the package raises bare Exception
            fail(65, "%s: not a tokenizer: %s" % (whole, error))
        self.version = tokenizers.__version__
        self.largest_id = max(self.tokenizer.get_vocab(with_added_tokens=True).values(), default=0)

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def encode_all(self, texts):
        encode = getattr(self.tokenizer, "encode_batch_fast", self.tokenizer.encode_batch)
        return [encoding.ids for encoding in encode(texts, add_special_tokens=False)]

    def end(self, vocabulary):
        """Returns the token that ends a text, as the tokenizer's settings name it, or else the model's; None if neither does."""
        for name in ("tokenizer_config.json", "special_tokens_map.json"):
            token = read_json(os.path.join(self.folder, name)).get("eos_token")
            token = token.get("content") if isinstance(token, dict) else token
            number = self.tokenizer.token_to_id(token) if isinstance(token, str) else None
            if number is not None and number < vocabulary:
                return {"id": number, "text": token, "from": os.path.join(self.folder, name)}
        for name in ("config.json", "generation_config.json"):
            number = read_json(os.path.join(self.folder, name)).get("eos_token_id")
            number = number[0] if isinstance(number, list) and number else number
            if isinstance(number, int) and 0 <= number < vocabulary:
                text = self.tokenizer.id_to_token(number)
                return {"id": number, "text": text or "", "from": os.path.join(self.folder, name)}
        return None


class Pieces:
    """Cuts a text that is read bit by bit into pieces whose tokens together are those of the whole."""

    def __init__(self, model, path):
        self.model, self.path = model, path
        self.read_bytes, self.cutless = 0, False
        self.lead_ids = {lead: model.ids(lead) for _, _, lead in CUTS}

    def __iter__(self):
        """Yields (lead, piece) in order; the lead is "" if no tokens are to be dropped."""
        lead, text, tried = "", "", 0
        for more in self.blocks():
            text += more
            while len(text) > PIECE_CHARACTERS + WINDOW_CHARACTERS and not self.cutless:
                cut = self.find_cut(text, max(PIECE_CHARACTERS, tried))
                if cut is None:
                    tried = len(text) - WINDOW_CHARACTERS
                    self.cutless = len(text) > LARGEST_CUTLESS_PIECE
                    break
                yield lead, text[:cut[0]]
                lead, text, tried = cut[1], text[cut[0]:], 0
        yield lead, text

    def blocks(self):
        decoder = codecs.getincrementaldecoder("utf-8")()
        with open(self.path, "rb") as file:
            while True:
                data = file.read(READ_BYTES)
                pending = len(decoder.getstate()[0])
                try:
                    text = decoder.decode(data, final=not data)
                except UnicodeDecodeError as error:
                    fail(65, "%s: not UTF-8 at byte %d (%s); convert the text" % (
                        self.path, self.read_bytes - pending + error.start, error.reason))
                self.read_bytes += len(data)
                if not data:
                    return
                yield text

    def find_cut(self, text, first):
        """Returns the end, at `first` or later, of the piece that begins `text`, and the lead of the next one; or None."""
        for pattern, side, lead in CUTS:
            tried = 0
            for match in pattern.finditer(text, first, min(first + PIECE_CHARACTERS, len(text) - WINDOW_CHARACTERS)):
                at = getattr(match, side)()
                if self.is_seamless(text, at, lead):
                    return at, lead
                tried += 1
                if tried == CUTS_TRIED:
                    break
        return None

    def is_seamless(self, text, at, lead):
        before, after = text[at - WINDOW_CHARACTERS:at], text[at:at + WINDOW_CHARACTERS]
        led, lead_ids = self.model.ids(lead + after), self.lead_ids[lead]
        return (led[:len(lead_ids)] == lead_ids
                and self.model.ids(before + after) == self.model.ids(before) + led[len(lead_ids):])


class PartWriter:
    """Writes token files PREFIX-00000.bin and so on; each is complete when its name appears."""

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

    def abandon(self):
        if self.file is not None:
            self.file.close()
            os.remove(self.prefix + ".tmp")


def cached(listing, vocabulary):
    """Returns what an earlier run wrote, if all of it is still there and fits the model."""
    answer = read_json(listing)
    try:
        whole = all(os.path.getsize(name) == size for name, size in zip(answer["files"], answer["sizes"]))
        return answer if whole and answer["largest"] < vocabulary else None
    except (OSError, KeyError):
        return None


class TextEncoder:
    def __init__(self, model, cache, vocabulary):
        self.model, self.cache, self.vocabulary = model, cache, vocabulary
        self.notes, self.started = [], os.getppid()

    def encode(self, path):
        prefix = self.cache.path(self.key(path))
        return self.cache.make(os.path.basename(prefix), lambda: cached(prefix + ".json", self.vocabulary),
                               lambda: self.write_parts(path, prefix))

    def key(self, path):
        key = hash_of(self.model.key, self.model.version.encode(), b"%d" % TOOL_VERSION)
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                for block in iter(lambda: file.read(READ_BYTES), b""):
                    key.update(block)
        except OSError as error:
            fail(65, "%s: cannot read the text: %s" % (path, error.strerror))
        if size == 0:
            fail(65, "%s: the data file is empty, expected text" % path)
        return key.hexdigest()

    def write_parts(self, path, prefix):
        writer = PartWriter(prefix, self.model.largest_id > 65535)
        pieces = Pieces(self.model, path)
        progress = Progress(path, pieces)
        largest, lines, batch = 0, 0, []

        def write_batch():
            nonlocal largest, lines
            if os.getppid() != self.started:
                sys.exit(75)  # whoever asked has ended
            for (lead, piece), ids in zip(batch, self.model.encode_all([lead + piece for lead, piece in batch])):
                ids = ids[len(pieces.lead_ids.get(lead, ())):]
                largest = max(largest, max(ids, default=0))
                if largest >= self.vocabulary:
                    self.refuse_id(path, lead, piece, lines)
                lines += piece.count("\n")
                writer.write(ids)
            batch.clear()
            progress.show(writer.total + writer.count)

        try:
            for led_piece in pieces:
                batch.append(led_piece)
                if len(batch) == PIECES_AT_ONCE:
                    write_batch()
            write_batch()
        except BaseException:  # a full disk, too
            writer.abandon()
            raise
        writer.close()
        if not writer.files:
            fail(65, "%s: the tokenizer makes no token of this text" % path)
        if pieces.cutless:
            self.notes.append("%s: encoded in one piece, since this tokenizer cannot be cut; it takes much memory" % path)
        answer = {"files": writer.files, "sizes": [os.path.getsize(name) for name in writer.files], "tokens": writer.total,
                  "largest": largest}
        write_whole(prefix + ".json", json.dumps(answer))
        return answer

    def refuse_id(self, path, lead, piece, lines):
        encoding = self.model.tokenizer.encode(lead + piece, add_special_tokens=False)
        for number, token, (begin, _) in zip(encoding.ids, encoding.tokens, encoding.offsets):
            if number >= self.vocabulary:
                fail(65, "%s:%d: '%s' is token %d, expected less than the model's vocabulary of %d: the tokenizer %s has more"
                         " tokens than the model" % (path, lines + 1 + piece.count("\n", 0, max(0, begin - len(lead))), token,
                                                     number, self.vocabulary, self.model.path))


class Progress:
    def __init__(self, path, pieces):
        self.path, self.pieces, self.size = path, pieces, os.path.getsize(path)
        self.last = time.monotonic()

    def show(self, tokens):
        now = time.monotonic()
        if now - self.last < PROGRESS_SECONDS:
            return
        self.last = now
        print(json.dumps({"progress": {"text": self.path, "bytes": min(self.pieces.read_bytes, self.size), "size": self.size,
                                       "tokens": tokens}}), flush=True)


def encode_texts(arguments, cache):
    paths = json.load(sys.stdin)
    model = Model(arguments.tokenizer, cache)
    encoder = TextEncoder(model, cache, arguments.vocabulary)
    texts = [encoder.encode(path) for path in paths]
    print(json.dumps({"texts": [{"files": text["files"], "tokens": text["tokens"]} for text in texts],
                      "end": model.end(arguments.vocabulary), "notes": encoder.notes}))


def encode_prompt(arguments, cache):
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        fail(65, "the prompt: not UTF-8 at byte %d (%s)" % (error.start, error.reason))
    print(json.dumps(Model(arguments.tokenizer, cache).tokenizer.encode(text).ids))


def decode(arguments, cache):
    text = Model(arguments.tokenizer, cache).tokenizer.decode(json.load(sys.stdin), skip_special_tokens=True)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def main():
    del sys.path[0]  # its folder, whose tokenize.py would hide the standard library's tokenize
    parser = argparse.ArgumentParser(prog="tokenize.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = {"texts": encode_texts, "encode": encode_prompt, "decode": decode}
    parser.add_argument("mode", choices=list(modes))
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--vocabulary", type=int, default=1 << 31, help="ids must be below")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    parser.add_argument("--cache", default=os.path.join(base, "strata", "tokens"))
    arguments = parser.parse_args()
    modes[arguments.mode](arguments, Cache(arguments.cache))


if __name__ == "__main__":
    main()
