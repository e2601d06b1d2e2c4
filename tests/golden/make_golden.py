#!/usr/bin/env python3
"""Makes golden values: tiny random models of each family, computed by transformers entirely in float64.

    make_golden.py [NAME...]     writes tests/golden/NAME/ (all families unless named)
    make_golden.py --check       computes again and compares with the committed values

Needs PyTorch, transformers and safetensors; nothing in the product or its tests does. README.md says what the files hold.
transformers computes norms, rotary tables and softmax in fp32 whatever the model's type; this script makes it compute them in
float64, too (`float64_everywhere`), and a dispatch hook proves that no fp32 tensor occurs.
"""
import argparse
import contextlib
import json
import os
import shutil
import sys
import types

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH, SEQUENCE, CONTEXT, STEPS = 2, 16, 32, 30
ADAMW = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
PLAIN = dict(fused=False, foreach=False)

# Optimizers and masks do not depend on the model, so one family is enough, on the first steps of its batches.
ONE_FAMILY, OPTIMIZER_STEPS = "llama", 10
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1, **PLAIN),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.5, weight_decay=0.1, **PLAIN),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True, weight_decay=0.1, **PLAIN),
    "adam": lambda p: torch.optim.Adam(p, **ADAMW, **PLAIN),
}

# Valid targets in each row of each step. One step of SGD shows a wrong divisor, which AdamW would cancel.
MASKED_STEPS, MASKED_COUNTS = 3, ((16, 5, 0, 1), (0, 0, 16, 3), (7, 0, 16, 0))

LLAMA = dict(vocab_size=96, hidden_size=32, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, tie_word_embeddings=False)
# Wavelengths are 6.3, 53, 444, 3730: one is kept, one lies in the smooth band, two are fully scaled.
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=5000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=64)

# Wavelengths are 6.3, 17, 44, 118. The ramp from kept to interpolated frequencies begins at the first; it would end at pair 8, but its
# bound, head size - 1, limits it.
YARN_ROPE = dict(rope_type="yarn", rope_theta=50.0, factor=4.0, original_max_position_embeddings=8192, beta_fast=1024.0,
                 beta_slow=1.0)

# Odd vocabularies show the padding to a multiple of 128; head_dim differs from hidden / heads in qwen3. Rotations of qwen2 turn fast: where
# one hardly turns, the gradient of the key's bias cancels to noise, which fp32 cannot be judged by.
FAMILIES = {
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=CONTEXT, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=None, eos_token_id=None),
    "llama": lambda: transformers.LlamaConfig(**LLAMA),
    "llama3": lambda: transformers.LlamaConfig(
        **{**LLAMA, "max_position_embeddings": 512}, num_key_value_heads=2, rope_parameters=dict(LLAMA3_ROPE)),
    "llama-linear": lambda: transformers.LlamaConfig(
        **LLAMA, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)),
    "qwen2": lambda: transformers.Qwen2Config(
        **{**LLAMA, "vocab_size": 101, "intermediate_size": 72, "tie_word_embeddings": True, "rms_norm_eps": 1e-6},
        num_key_value_heads=2, rope_parameters=dict(rope_type="default", rope_theta=100.0)),
    "qwen3": lambda: transformers.Qwen3Config(
        **{**LLAMA, "intermediate_size": 64, "rms_norm_eps": 1e-6}, num_key_value_heads=2, head_dim=16,
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0)),
    "mistral": lambda: transformers.MistralConfig(
        **{**LLAMA, "intermediate_size": 72}, num_key_value_heads=1, sliding_window=CONTEXT,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
    "llama-yarn": lambda: transformers.LlamaConfig(
        **{**LLAMA, "max_position_embeddings": 32768}, rope_parameters=dict(YARN_ROPE)),
}

# Seeds whose first AdamW steps, which are signs of gradients, do not depend on the last bit of an element near zero.
SEEDS = {"llama-yarn": 77}


class Float64Torch(types.ModuleType):
    """Stands for the module torch, with float64 in place of float32."""

    def __getattr__(self, name):
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)


@contextlib.contextmanager
def float64_everywhere(config):
    """Makes model code that runs inside get float64 wherever it asks for fp32."""
    family = config.model_type
    modules = [sys.modules[f"transformers.models.{family}.modeling_{family}"],
               sys.modules["transformers.modeling_rope_utils"]]
    to_float = torch.Tensor.float
    default = torch.get_default_dtype()
    for module in modules:
        module.torch = Float64Torch("torch")
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        for module in modules:
            module.torch = torch
        torch.Tensor.float = to_float
        torch.set_default_dtype(default)


class RefuseFloat32(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.dtype in (torch.float32, torch.float16, torch.bfloat16):
                raise RuntimeError(f"{function} made a {tensor.dtype} tensor")
        return result


def randomize(model, generator):
    """Makes every parameter random: matrices that keep the size of signals, norms near 1, biases well away from 0."""
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if p.ndim == 2:
            is_table = "wte" in name or "wpe" in name or "embed_tokens" in name
            scale = 0.4 if is_table else 1.0 / (p.shape[0] if model.config.model_type == "gpt2" else p.shape[1]) ** 0.5
            p.data = scale * noise
        else:
            p.data = 0.2 * noise + (0.0 if name.endswith("bias") else 1.0)


def tokens(shape, vocabulary, generator):
    """Draws skewed tokens, so that there is something to learn."""
    return (torch.rand(shape, generator=generator) ** 2 * vocabulary).to(torch.int64)


def mean_loss(model, inputs, targets):
    """Returns logits and the mean loss over the valid targets (>= 0) of all rows."""
    logits = model(input_ids=inputs, use_cache=False).logits
    return logits, F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-100)


def shifted(rows):
    return rows[..., :-1], rows[..., 1:]


def build(config, weights):
    """Makes the model in float64 with `weights` (fp32 numbers), rotary frequencies included."""
    with float64_everywhere(config):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float64)
        model.load_state_dict({k: v.double() for k, v in weights.items()})
    for name, buffer in model.named_buffers():
        if buffer.dtype == torch.float32:
            raise RuntimeError(f"buffer {name} is fp32")
    return model.eval()


def train(model, inputs, targets, optimizer):
    """Trains, and returns the losses before each update."""
    losses = []
    with float64_everywhere(model.config), RefuseFloat32():
        for step in zip(inputs, targets):
            optimizer.zero_grad()
            _, loss = mean_loss(model, *step)
            loss.backward()
            losses.append(loss.detach())
            optimizer.step()
    return torch.stack(losses)


def optimizer_values(config, weights, batches):
    out = {}
    for name, make_optimizer in OPTIMIZERS.items():
        model = build(config, weights)
        out[f"{name}.losses"] = train(model, *shifted(batches[:OPTIMIZER_STEPS]), make_optimizer(model.parameters()))
        out |= {f"{name}.final.{key}": p.detach().float() for key, p in model.named_parameters()}
        print(f"{'':14} {name} {out[f'{name}.losses'][0]:.4f} -> {out[f'{name}.losses'][-1]:.4f}")
    return {name: value.contiguous() for name, value in out.items()}


def masked_values(config, weights):
    generator = torch.Generator().manual_seed(4321)
    batches = tokens((MASKED_STEPS, len(MASKED_COUNTS[0]), SEQUENCE + 1), config.vocab_size, generator)
    inputs, targets = shifted(batches)
    order = torch.rand(targets.shape, generator=generator).argsort(-1)
    targets = targets.masked_fill(order >= torch.tensor(MASKED_COUNTS)[:, :, None], -100)
    model = build(config, weights)
    losses = train(model, inputs, targets, OPTIMIZERS["sgd"](model.parameters()))
    print(f"{'':14} masked {losses[0]:.4f} -> {losses[-1]:.4f}")
    out = {"batches": batches.int(), "targets": targets.int(), "losses": losses}
    out |= {f"final.{name}": p.detach().float() for name, p in model.named_parameters()}
    return {name: value.contiguous() for name, value in out.items()}


def golden_values(config, weights, generator):
    model = build(config, weights)
    batch = tokens((BATCH, SEQUENCE + 1), config.vocab_size, generator)
    batches = tokens((STEPS, BATCH, SEQUENCE + 1), config.vocab_size, generator)
    with float64_everywhere(config), RefuseFloat32():
        logits, loss = mean_loss(model, *shifted(batch))
        loss.backward()
        out = {"input_ids": batch[:, :-1].int(), "targets": batch[:, 1:].int(), "logits": logits.detach(),
               "loss": loss.detach().reshape(1), "adamw.batches": batches.int()}
        out |= {f"grad.{name}": p.grad.clone() for name, p in model.named_parameters()}
    out["adamw.losses"] = train(model, *shifted(batches), torch.optim.AdamW(model.parameters(), **ADAMW, **PLAIN))
    out |= {f"final.{name}": p.detach() for name, p in model.named_parameters()}
    return {name: value.contiguous() for name, value in out.items()}


def save_model(model, folder, **options):
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, **options)
    generation = os.path.join(folder, "generation_config.json")
    if os.path.exists(generation):
        os.remove(generation)


def make(name):
    """Returns the fp32 model as stock transformers builds it, and golden values by file."""
    config = FAMILIES[name]()
    generator = torch.Generator().manual_seed(SEEDS.get(name, 1234 + list(FAMILIES).index(name)))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    randomize(model, generator)
    values = golden_values(config, model.state_dict(), generator)
    stock_logits, _ = mean_loss(model, values["input_ids"].long(), values["targets"].long())
    difference = (stock_logits.double() - values["logits"]).norm() / values["logits"].norm()
    print(f"{name:14} loss {values['loss'].item():.4f}, AdamW {values['adamw.losses'][0]:.4f} -> "
          f"{values['adamw.losses'][-1]:.4f}, stock fp32 logits differ by {difference:.1e}")
    if not difference < 1e-5:
        raise RuntimeError(f"{name}: float64 everywhere changed the model")
    files = {"golden.safetensors": values}
    if name == ONE_FAMILY:
        files["optimizers.safetensors"] = optimizer_values(config, model.state_dict(), values["adamw.batches"].long())
        files["masked.safetensors"] = masked_values(config, model.state_dict())
    return model, files


def write_published_rope(folder):
    """Rewrites rotary scaling as published Llama folders spell it (transformers before 5)."""
    path = os.path.join(folder, "config.json")
    with open(path) as file:
        config = json.load(file)
    rope = config.pop("rope_parameters")
    config |= {"rope_theta": rope["rope_theta"], "rope_scaling": {"type": rope["rope_type"], "factor": rope["factor"]}}
    with open(path, "w") as file:
        file.write(json.dumps(config, indent=2, sort_keys=True) + "\n")


def write_variants(name, model, folder):
    """Writes the same weights in other layouts that people have on disk; golden values are those of `name`."""
    if name == "llama":
        save_model(model, os.path.join(HERE, "llama-sharded"), max_shard_size="40KB")
    if name == "gpt2":  # the hub's layout: no `transformer.` prefix, causal masks stored as buffers
        bare = os.path.join(HERE, "gpt2-bare")
        os.makedirs(bare, exist_ok=True)
        shutil.copy(os.path.join(folder, "config.json"), bare)
        weights = load_file(os.path.join(folder, "model.safetensors"))
        weights = {key.removeprefix("transformer."): value for key, value in weights.items()}
        mask = torch.ones(CONTEXT, CONTEXT).tril().reshape(1, 1, CONTEXT, CONTEXT)
        weights |= {f"h.{layer}.attn.bias": mask.clone() for layer in range(model.config.n_layer)}
        save_file(weights, os.path.join(bare, "model.safetensors"), metadata={"format": "pt"})


def write(name):
    folder = os.path.join(HERE, name)
    model, files = make(name)
    save_model(model, folder)
    if name == "llama-linear":
        write_published_rope(folder)
    for file, values in files.items():
        save_file(values, os.path.join(folder, file))
    write_variants(name, model, folder)


def check(name):
    folder = os.path.join(HERE, name)
    for file, values in make(name)[1].items():
        stored = load_file(os.path.join(folder, file))
        if stored.keys() != values.keys():
            raise SystemExit(f"{name}/{file}: other tensors than committed: {stored.keys() ^ values.keys()}")
        for key, value in values.items():
            tolerance = 1e-6 if value.dtype == torch.float32 else 1e-8
            if not torch.allclose(stored[key].double(), value.double(), rtol=tolerance, atol=tolerance):
                raise SystemExit(f"{name}/{file}: {key} differs from the committed values")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FAMILIES))
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.names or FAMILIES:
        if name not in FAMILIES:
            parser.error(f"unknown family {name}")
        (check if args.check else write)(name)


if __name__ == "__main__":
    main()
