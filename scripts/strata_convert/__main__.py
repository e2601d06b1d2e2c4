#!/usr/bin/env python3
"""Converts checkpoints of DeepSpeed and PyTorch into Strata's, and Strata's into DeepSpeed's.

    strata_convert from-deepspeed DIR OUT --model HF_CONFIG_DIR    ZeRO 0-3 or universal -> OUT/step-00001000
    strata_convert from-torch DIR OUT                              pytorch_model*.bin -> a safetensors folder
    strata_convert to-deepspeed-universal STEP_DIR OUT             OUT for DeepSpeed's "load_universal": true

Needs the packages torch (2.6 or newer), numpy and xxhash, not DeepSpeed. Pickles are read with weights_only=True and
stand-ins for the few DeepSpeed classes in them: no code from a file ever runs. docs/deepspeed-checkpoints.md says what
is kept. Prints the folder that was written. Exit codes: 65 the input is at fault, 69 a package is missing, 74 the disk
failed, also one under standard output.
"""
import argparse
import importlib
import os
import sys

from refused import Refused, note

# The module of each command, and the packages that it needs.
COMMANDS = {"from-deepspeed": ("from_deepspeed", ("numpy", "torch", "xxhash")),
            "from-torch": ("from_torch", ("numpy", "torch")),
            "to-deepspeed-universal": ("to_universal", ("numpy", "torch", "xxhash"))}


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected at least 1, found %d" % number)
    return number


def natural(text):
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("expected at least 0, found %d" % number)
    return number


def add_from_deepspeed(commands):
    sub = commands.add_parser("from-deepspeed", help="import a DeepSpeed checkpoint with its optimizer state",
                              description="Imports a DeepSpeed checkpoint (ZeRO 0-3 or universal), optimizer state "
                                          "included, of Adam, AdamW or Lion.")
    sub.add_argument("dir", help="what save_checkpoint wrote: the folder with `latest`, or one global_step folder")
    sub.add_argument("out", help="Strata's output folder: OUT/step-00001000 is written, for train --output OUT")
    sub.add_argument("--model", required=True, metavar="DIR", help="folder with the model's config.json and tokenizer")
    sub.add_argument("--tag", help="which global_step folder of DIR; default: the one that `latest` names")
    sub.add_argument("--consumed-samples", type=natural, metavar="N",
                     help="samples trained on, where data goes on; default: the checkpoint's consumed_samples, "
                          "consumed_train_samples or global_samples")
    sub.add_argument("--global-batch", type=positive, metavar="N", help="samples per step; default: the checkpoint's")
    sub.add_argument("--sequence-length", type=positive, metavar="N",
                     help="tokens per sample; default: the model's context, at most 1024")
    sub.add_argument("--seed", type=int, default=1, metavar="N", help="of Strata's order of samples; default 1")
    sub.add_argument("--shuffle", choices=["true", "false"], default="true", help="Strata's order; default true")
    sub.add_argument("--optimizer", choices=["adamw", "adam", "lion"],
                     help="whose state it is; default: what the checkpoint's configuration and state say")
    sub.add_argument("--weights-only", action="store_true", help="make OUT a Hugging Face folder: no optimizer state")
    add_opaque(sub)


def add_from_torch(commands):
    sub = commands.add_parser("from-torch", help="rewrite pytorch_model*.bin as safetensors",
                              description="Rewrites a folder with pytorch_model.bin, or shards and an index, as a folder "
                                          "with safetensors. Types stay; other small files are copied.")
    sub.add_argument("dir", help="the folder")
    sub.add_argument("out", help="the new Hugging Face folder")
    add_opaque(sub)


def add_opaque(sub):
    sub.add_argument("--opaque", action="append", default=[], metavar="MODULE.CLASS",
                     help="of objects of this class, read the attributes and nothing else; may be given several times")


def add_to_universal(commands):
    sub = commands.add_parser("to-deepspeed-universal", help="write DeepSpeed's universal checkpoint",
                              description="Verifies every byte of one of Strata's checkpoints, then writes it as "
                                          "DeepSpeed's universal checkpoint.")
    sub.add_argument("step_dir", help="the checkpoint, OUTPUT/step-00001000")
    sub.add_argument("out", help="folder for DeepSpeed's load_checkpoint: OUT/global_stepN_universal is written")
    sub.add_argument("--name-prefix", default="", metavar="TEXT",
                     help="what the names in DeepSpeed's module have in front of Hugging Face's (\"model.\")")
    sub.add_argument("--learning-rate", type=float, metavar="RATE",
                     help="of the first step in DeepSpeed, whose schedulers set it after a step, for the next; default: "
                          "what its configuration begins with")
    sub.add_argument("--torch-adam", action="store_true",
                     help="DeepSpeed will run an optimizer of torch.optim (\"torch_adam\": true, or the client's), not "
                          "its own")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="strata_convert", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_from_deepspeed(commands)
    add_from_torch(commands)
    add_to_universal(commands)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    module, packages = COMMANDS[arguments.command]
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            note("the Python package `%s` is missing (%s); install it with `pip install %s`, or run this with a Python "
                 "that has it" % (package, error, package))
            return 69
    try:
        print(importlib.import_module(module).run(arguments))
        return 0
    except Refused as error:
        note(str(error))
        return 65
    except BrokenPipeError:  # nobody reads the last line
        return 0
    except OSError as error:
        note(str(error))
        return 74


def code_of_main():
    """Returns the exit code, also where argparse ends the program."""
    try:
        return main()
    except SystemExit as end:
        return end.code


def code_after_output(code):
    """Returns 74 in place of 0 if standard output does not take what was printed. A reader that has gone misses nothing, and nobody reads a closed one."""
    if sys.stdout is None:
        return code
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python tries again at its end
        if not isinstance(error, BrokenPipeError):
            note("standard output: text is lost: %s" % error.strerror)
            return code or 74
    return code


if __name__ == "__main__":
    sys.exit(code_after_output(code_of_main()))
