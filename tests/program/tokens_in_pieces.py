"""Encodes texts in small pieces and whole, for tokenizers of every kind; model_directories_test.py starts it.

    tokens_in_pieces.py FOLDER     prints a JSON object per tokenizer and text
"""
import importlib.util
import json
import os
import pathlib
import random
import sys

from make_model_directories import LLAMA3, TOKENIZERS, byte_level, train_bpe
from tokenizers import AddedToken, Tokenizer, Regex, models, normalizers, pre_tokenizers, trainers

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def load_tool():
    spec = importlib.util.spec_from_file_location("tokenize_tool", REPOSITORY / "scripts/tokenize.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.PIECE_CHARACTERS = 2000
    return tool


def kinds(text, folder):
    """Makes tokenizers by name; most differ in what they do at the beginning or the end of a text."""
    made = {}
    for make in dict.fromkeys(TOKENIZERS):
        if make.__name__.startswith("only_"):
            continue
        (folder / make.__name__).mkdir()
        made[make.__name__] = make(folder / make.__name__, text).backend_tokenizer
    made["prefix space"] = train_bpe(text, pre_tokenizers.ByteLevel(add_prefix_space=True))
    legacy = json.loads(made["llama2"].to_str())  # the first Llama has no pre-tokenizer, so a text is one word
    legacy["pre_tokenizer"] = None
    legacy["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    made["one word"] = Tokenizer.from_str(json.dumps(legacy))
    made["stripping"] = byte_level(text)
    made["stripping"].normalizer = normalizers.Strip()
    made["greedy added token"] = byte_level(text)
    made["greedy added token"].add_special_tokens([AddedToken("the", lstrip=True, rstrip=True)])
    made["words"] = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made["words"].normalizer, made["words"].pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made["words"].train_from_iterator([text], trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False))
    return made


def texts():
    prose = "".join(path.read_text() for path in sorted((REPOSITORY / "docs").glob("*.md")))[:60_000]
    draw = random.Random(1)
    parts = ["\u00e9", "\u4e2d\u6587", "e\u0301 ", "\n", "word ", "  ", "\t", "1234567", "!\n", "<|endoftext|>", "\U0001f600", "\u0301",
             "the", " the\n", ".\r\n", "a\nb"]
    return {"prose": prose, "crlf": prose.replace("\n", "\r\n"), "one line": prose.replace("\n", " "),
            "one word": "".join(prose.split()), "paragraphs": prose.replace("\n", "\n\n"),
            "mixed": "".join(draw.choice(parts) for _ in range(20_000))}


def main():
    folder = pathlib.Path(sys.argv[1])
    tool = load_tool()
    samples = texts()
    for name, tokenizer in kinds(samples["prose"], folder).items():
        file = folder / "tokenizer.json"
        tokenizer.save(str(file))
        model = tool.Model(str(file), tool.Cache(str(folder)))
        for kind, text in samples.items():
            (folder / "text").write_bytes(text.encode())
            pieces = tool.Pieces(model, str(folder / "text"))
            ids, count = [], 0
            for lead, piece in pieces:
                count += 1
                ids += model.ids(lead + piece)[len(pieces.lead_ids.get(lead, ())):]
            print(json.dumps({"tokenizer": name, "text": kind, "pieces": count, "same": ids == model.ids(text)}), flush=True)


if __name__ == "__main__":
    main()
