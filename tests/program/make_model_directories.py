"""Makes tiny model directories as transformers saves them, and prints their contents; model_directories_test.py starts it.

    make_model_directories.py make FOLDER TEXT     writes FOLDER/NN-...; prints a JSON object per directory: its tokens of TEXT by
                                                   AutoTokenizer and the loss of the first window by transformers
    make_model_directories.py look DIRECTORY TEXT ...   pairs: prints what AutoTokenizer makes of a directory and of messages
"""
import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import sentencepiece
import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
SEQUENCE, VOCABULARY, DIRECTORIES = 32, 400, 30
MESSAGES = [{"role": "user", "content": "What now?"}, {"role": "assistant", "content": "Nothing."}]
TEMPLATE = "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + eos_token }}{% endfor %}"
TOOLS = "{% for m in messages %}{{ '[' + m['content'] + ']' }}{% endfor %}"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
END = "<|endoftext|>"


def train_bpe(text, pre_tokenizer, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=[END],
                                                              initial_alphabet=alphabet, show_progress=False))
    return tokenizer


def byte_level(text):
    return train_bpe(text, pre_tokenizers.ByteLevel(add_prefix_space=False))


def wrapped(tokenizer):
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END)


def general(folder, text):
    return wrapped(byte_level(text))


def llama3(folder, text):
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    tokenizer = train_bpe(text, pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)]))
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{END} $A", special_tokens=[(END, 0)])
    return wrapped(tokenizer)


def qwen2(folder, text):
    byte_level(text).model.save(str(folder))
    tokenizer = transformers.Qwen2Tokenizer.from_pretrained(folder)
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    return tokenizer


def gpt2(folder, text):
    byte_level(text).model.save(str(folder))
    tokenizer = transformers.GPT2Tokenizer.from_pretrained(folder)
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    return tokenizer


def unigram(folder, text):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.train_from_iterator(text.splitlines(), trainers.UnigramTrainer(
        vocab_size=VOCABULARY, unk_token="<unk>", special_tokens=["<unk>", END], show_progress=False))
    return wrapped(tokenizer)


def truncating(folder, text):
    """Makes a tokenizer.json with truncation and padding, as programs leave it that fed a model of a fixed length."""
    tokenizer = byte_level(text)
    tokenizer.enable_truncation(20)
    tokenizer.enable_padding(length=64, pad_token=END)
    return wrapped(tokenizer)


def with_added_tokens(folder, text):
    tokenizer = wrapped(byte_level(text))
    tokenizer.add_tokens([AddedToken("<|user|>", special=True), "towns", AddedToken("<|assistant|>", special=True, lstrip=True)])
    return tokenizer


def sentence_piece(folder, text):
    (folder / "text").write_text(text)
    sentencepiece.SentencePieceTrainer.train(input=str(folder / "text"), model_prefix=str(folder / "tokenizer"), vocab_size=VOCABULARY,
                                             model_type="bpe", byte_fallback=True, minloglevel=2, hard_vocab_limit=False)
    (folder / "text").unlink()
    (folder / "tokenizer.vocab").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>",
                                                              "bos_token": "<s>", "unk_token": "<unk>"}))


def llama2(folder, text):
    sentence_piece(folder, text)
    tokenizer = transformers.LlamaTokenizer.from_pretrained(folder)
    (folder / "tokenizer.model").unlink()
    return tokenizer


# The next three leave no tokenizer.json: it is made when it is needed.
def only_vocabulary_and_merges(folder, text):
    byte_level(text).model.save(str(folder))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer", "eos_token": END}))


def only_sentence_piece(folder, text):
    sentence_piece(folder, text)


def only_words(folder, text):
    words = sorted(set("".join(c if c.isalnum() else " " for c in text.lower()).split()))[:VOCABULARY - 100]
    letters = sorted(set(c for c in text.lower() if not c.isspace()))[:90]
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters,
                                                 *[w for w in words if len(w) > 1]]) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", "eos_token": "[SEP]"}))


TOKENIZERS = [general, gpt2, qwen2, llama2, llama3, unigram, truncating, with_added_tokens, only_vocabulary_and_merges, general,
              only_sentence_piece, llama2, only_words]
# Without tokenizer.json, transformers chooses a tokenizer by the family.
FAMILY_OF = {only_vocabulary_and_merges: "gpt2", only_sentence_piece: "llama", only_words: "gpt2"}
SHAPE = dict(hidden_size=32, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)
FAMILIES = {
    "gpt2": lambda vocabulary, tied: transformers.GPT2Config(
        vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        tie_word_embeddings=tied),
    "llama": lambda vocabulary, tied: transformers.LlamaConfig(vocab_size=vocabulary, tie_word_embeddings=tied, **SHAPE),
    "qwen2": lambda vocabulary, tied: transformers.Qwen2Config(
        vocab_size=vocabulary, tie_word_embeddings=tied, num_key_value_heads=2, **SHAPE),
    "mistral": lambda vocabulary, tied: transformers.MistralConfig(
        vocab_size=vocabulary, tie_word_embeddings=tied, num_key_value_heads=2, **SHAPE),
    "qwen3": lambda vocabulary, tied: transformers.Qwen3Config(
        vocab_size=vocabulary, tie_word_embeddings=tied, num_key_value_heads=2, head_dim=16, **SHAPE),
}
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
TEMPLATES = ["file", "inside", "none", "named"]


def save_tokenizer(make, template, folder, text):
    tokenizer = make(folder, text)
    if tokenizer is None:
        if template != "none":
            (folder / "chat_template.jinja").write_text(TEMPLATE)
        return
    if template != "none":
        tokenizer.chat_template = {"default": TEMPLATE, "tool_use": TOOLS} if template == "named" else TEMPLATE
    tokenizer.save_pretrained(folder, save_jinja_files=template != "inside")


def make_directory(number, folder, text):
    """Makes directory `number`; each property cycles with a period of its own."""
    make = TOKENIZERS[number % len(TOKENIZERS)]
    family = FAMILY_OF.get(make, list(FAMILIES)[number % len(FAMILIES)])
    if family == "qwen2":  # transformers splits words as Qwen does in its directories, whatever tokenizer.json says
        make = qwen2
    dtype, tied, template = DTYPES[number % 3], number % 2 == 0, TEMPLATES[number // 2 % len(TEMPLATES)]
    folder = folder / f"{number:02}-{make.__name__}-{family}-{str(dtype)[6:]}-{'tied' if tied else 'own'}-{template}"
    folder.mkdir(parents=True)
    save_tokenizer(make, template, folder, text)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(number)
    config = FAMILIES[family](len(tokenizer) + number % 4, tied)  # some models have unused rows
    model = AutoModelForCausalLM.from_config(config).to(dtype)
    model.save_pretrained(folder, max_shard_size="30KB" if number // 3 % 2 else "5GB")
    (folder / "README.md").write_text("a model card")
    (folder / "LICENSE").write_text("a licence")
    return folder


def first_loss(folder, ids):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    window = torch.tensor([ids[:SEQUENCE + 1]])
    with torch.no_grad():
        logits = model(input_ids=window[:, :-1]).logits.double()
    return torch.nn.functional.cross_entropy(logits[0], window[0, 1:]).item()


def look(directory, text):
    tokenizer = AutoTokenizer.from_pretrained(directory)
    chat = tokenizer.apply_chat_template(MESSAGES, tokenize=False) if tokenizer.chat_template else None
    tools = tokenizer.apply_chat_template(MESSAGES, chat_template="tool_use", tokenize=False) \
        if isinstance(tokenizer.chat_template, dict) else None
    return {"directory": str(directory), "chat": chat, "tools": tools, "ids": tokenizer(text, add_special_tokens=False)["input_ids"]}


def main():
    mode, arguments = sys.argv[1], sys.argv[2:]
    if mode == "make":
        text = pathlib.Path(arguments[1]).read_bytes().decode()
        for number in range(DIRECTORIES):
            folder = make_directory(number, pathlib.Path(arguments[0]), text)
            found = look(folder, text)
            print(json.dumps(found | {"loss": first_loss(folder, found["ids"])}), flush=True)
    else:
        for directory, text in zip(arguments[::2], arguments[1::2]):
            print(json.dumps(look(directory, pathlib.Path(text).read_bytes().decode())), flush=True)


if __name__ == "__main__":
    main()
