#!/usr/bin/env python3
"""Times torch.save, torch.load and DeepSpeed's checkpoints on the state of one model, for bench/checkpoint.py; prints one JSON line.

    saving.py torch MODEL FOLDER        parameters and both moments of Adam, fp32, one file; one process
    saving.py deepspeed MODEL FOLDER    one of the ranks that torchrun starts: ZeRO-2, one step, save, load
Saves end in an fsync of every file and of their folder; before a load the files are dropped from the page cache.
"""
import json, os, sys, time

import torch


def synced(folder):
    for parent, _, files in os.walk(folder):
        for name in [*files, "."]:
            file = os.open(os.path.join(parent, name), os.O_RDONLY)
            os.fsync(file)
            os.close(file)


def forget(folder):
    for parent, _, files in os.walk(folder):
        for name in files:
            file = os.open(os.path.join(parent, name), os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def timed(body):
    begin = time.perf_counter()
    body()
    return time.perf_counter() - begin


def model_of(folder):
    import transformers
    config = transformers.AutoConfig.from_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_config(config).float()


def plain(model, folder):
    parameters = dict(model.named_parameters())
    state = {kind: {name: torch.randn_like(value) for name, value in parameters.items()} for kind in ("model", "moment1", "moment2")}
    path = os.path.join(folder, "state.pt")

    def save():
        torch.save(state, path)
        synced(folder)

    def load():
        stored = torch.load(path)
        for kind in state:
            for name in state[kind]:
                state[kind][name].copy_(stored[kind][name])

    save_seconds = timed(save)
    forget(folder)
    return {"save": save_seconds, "load": timed(load)}


def deepspeed(model, folder):
    import deepspeed
    import torch.distributed as dist
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    config = {"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}},
              "zero_optimization": {"stage": 2}, "steps_per_print": 10 ** 9}
    engine = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]
    ids = torch.arange(16).reshape(1, 16)
    engine.backward(torch.nn.functional.cross_entropy(engine(input_ids=ids).logits[0].float(), ids[0]))
    engine.step()

    def save():
        engine.save_checkpoint(folder, tag="one")
        dist.barrier()
        if dist.get_rank() == 0:
            synced(folder)
        dist.barrier()

    def load():
        engine.load_checkpoint(folder, tag="one")
        dist.barrier()

    dist.barrier()
    save_seconds = timed(save)
    forget(folder)
    dist.barrier()
    return {"save": save_seconds, "load": timed(load)}


def main():
    way, model, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1 if way == "deepspeed" else 2)
    result = {"torch": plain, "deepspeed": deepspeed}[way](model_of(model), folder)
    if int(os.environ.get("RANK", "0")) == 0:
        result["bytes"] = sum(os.path.getsize(os.path.join(parent, name)) for parent, _, files in os.walk(folder) for name in files)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
