"""Runs one rank of a tiny DeepSpeed job on the CPU, for convert_test.py: loads, trains, saves, dumps, trains on.

The argument is JSON with stage, dtype ("fp32", "bf16"), groups (weight decay for matrices alone), offload (DeepSpeed's own
Adam on the host, else torch.optim's), load (folder with a universal checkpoint), steps, save (folder), dump (file for
all tensors that the engine holds, whole), more (steps after that, whose losses go into the dump).
"""
import json
import os
import sys

import deepspeed
import torch
import transformers
from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

VOCABULARY = 97  # not divisible by the ranks


def make_model(folder):
    torch.manual_seed(1)
    config = transformers.AutoConfig.from_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_config(config).float().train()


def make_engine(spec, model):
    adam = {"lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, "torch_adam": not spec["offload"]}
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
              "optimizer": {"type": "AdamW", "params": adam}, "steps_per_print": 10 ** 9,
              "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-2, "warmup_num_steps": 10}},
              "zero_optimization": {"stage": spec["stage"]}, "checkpoint": {"load_universal": bool(spec["load"])}}
    if spec["dtype"] == "bf16":
        config["bf16"] = {"enabled": True}
    if spec["offload"]:
        config["zero_optimization"]["offload_optimizer"] = {"device": "cpu"}
    parameters = list(model.parameters())
    if spec["groups"]:
        parameters = [{"params": [p for p in parameters if p.dim() > 1]},
                      {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    return deepspeed.initialize(model=model, model_parameters=parameters, config=config)[0]


def train(engine, first, steps):
    losses = []
    for step in range(first, first + steps):
        generator = torch.Generator().manual_seed(100 * step + int(os.environ["RANK"]))
        ids = torch.randint(VOCABULARY, (2, 17), generator=generator)
        logits = engine(input_ids=ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.float().reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return losses


def whole_state(engine, spec):
    """Returns {name: {"fp32", "exp_avg", "exp_avg_sq"}}; collective."""
    found, kinds = {}, ("exp_avg", "exp_avg_sq")
    plain = spec["stage"] == 0
    masters = {}
    if spec["stage"] in (1, 2):  # DeepSpeed links states after its first group's first step, so other groups would have none
        engine.optimizer._hp_optimizer_states_linked = False
        engine.optimizer._lazy_init_hp_params_optimizer_state()
    if plain and spec["dtype"] == "bf16":
        for weights, copies in zip(engine.optimizer.fp16_groups, engine.optimizer.fp32_groups):
            masters.update(zip(map(id, weights), copies))
    for name, parameter in engine.module.named_parameters():
        if plain:
            master = masters.get(id(parameter), parameter)
            inner = engine.optimizer.optimizer if masters else engine.optimizer
            state = {kind: inner.state[master][kind] for kind in kinds}
        else:
            master = safe_get_full_fp32_param(parameter)
            state = {kind: safe_get_full_optimizer_state(parameter, kind) for kind in kinds}
        found[name] = {kind: tensor.detach().float().clone() for kind, tensor in (state | {"fp32": master}).items()}
    return found


def optimizer_steps(engine):
    optimizer = engine.optimizer
    while not isinstance(optimizer, torch.optim.Optimizer):
        optimizer = optimizer.optimizer
    return sorted({int(state["step"]) for state in optimizer.state.values() if "step" in state})


def main(spec):
    torch.set_num_threads(1)
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    engine = make_engine(spec, make_model(spec["model"]))
    client = {}
    if spec["load"]:
        client = engine.load_checkpoint(spec["load"])[1]
    first = engine.global_steps
    train(engine, first, spec["steps"])
    if spec["save"]:
        engine.save_checkpoint(spec["save"], client_state={"consumed_samples": 4 * (first + spec["steps"]) + 5})
    dump = {"state": whole_state(engine, spec), "steps": optimizer_steps(engine), "global_steps": engine.global_steps,
            "rate": engine.get_lr(), "consumed": client.get("consumed_samples")}
    dump["losses"] = train(engine, first + spec["steps"], spec["more"])
    if int(os.environ["RANK"]) == 0:
        torch.save(dump, spec["dump"])
    torch.distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # DeepSpeed's process groups can hang in their destructors


main(json.loads(sys.argv[1]))
