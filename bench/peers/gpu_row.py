#!/usr/bin/env python3
"""Trains the model of a bench row with PyTorch and prints a JSON object like the row's: the same shapes and arithmetic.

    gpu_row.py CONFIG.json [--micro-batch N] [--accumulation N] [--sequence-length N] [--steps N] [--eager]

Parameters, gradients and AdamW's state are bf16 (fused AdamW); attention is scaled_dot_product_attention; norms, MLP and
loss are compiled by torch.compile, block by block, so that compilation takes seconds. Models may be Llama or Qwen2.
Also times PyTorch's own products of the model's shapes and of 8192 x 8192 x 8192 on random data. MFU is counted as
train/accounting/model_flops.h does.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

LEFT_OUT = 3  # steps of compilation and first use of memory
PEAK_FLOPS = {"NVIDIA H200": 989.4e12, "NVIDIA H100 80GB HBM3": 989.4e12, "NVIDIA H100 PCIe": 756e12, "NVIDIA B200": 2250e12,
              "NVIDIA A100-SXM4-80GB": 312e12, "NVIDIA A100-SXM4-40GB": 312e12}


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, inner = c["hidden_size"], c["intermediate_size"]
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.size = c.get("head_dim") or hidden // self.heads
        packed = (self.heads + 2 * self.kv_heads) * self.size
        self.norm1, self.norm2 = (RMSNorm(hidden, c["rms_norm_eps"]) for _ in range(2))
        self.qkv = nn.Linear(hidden, packed, bias=c["model_type"] == "qwen2")
        self.out = nn.Linear(self.heads * self.size, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(
            [n * self.size for n in (self.heads, self.kv_heads, self.kv_heads)], dim=-1)
        q, k, v = (t.view(batch, length, -1, self.size).transpose(1, 2) for t in (q, k, v))
        q, k = (t * cos + torch.cat((-t[..., self.size // 2:], t[..., :self.size // 2]), -1) * sin for t in (q, k))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        x = x + self.out(a.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embedding = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        if c.get("tie_word_embeddings"):
            self.head.weight = self.embedding.weight

    def loss(self, x, targets):
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())

    def forward(self, tokens, targets, cos, sin):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.loss(x, targets)


def rotation(c, length, device, dtype):
    size = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    frequencies = c["rope_theta"] ** (-torch.arange(0, size, 2, device=device).float() / size)
    angles = torch.outer(torch.arange(length, device=device).float(), frequencies)
    angles = torch.cat((angles, angles), -1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def flops_per_token(c, length):
    heads, kv_heads, hidden = c["num_attention_heads"], c["num_key_value_heads"], c["hidden_size"]
    size = c.get("head_dim") or hidden // heads
    widths = 3 * c["intermediate_size"] + size * heads + size * (heads + 2 * kv_heads)
    layers = c["num_hidden_layers"]
    return 6 * (layers * hidden * widths + c["vocab_size"] * hidden + layers * size * heads * length)


def product_shapes(c, tokens):
    """Returns (rows, out, in) of each y = x W^T in the forward pass, and of the ceiling."""
    hidden, inner = c["hidden_size"], c["intermediate_size"]
    size = c.get("head_dim") or hidden // c["num_attention_heads"]
    packed = (c["num_attention_heads"] + 2 * c["num_key_value_heads"]) * size
    return {"qkv": (tokens, packed, hidden), "output": (tokens, hidden, c["num_attention_heads"] * size),
            "gate|up": (tokens, 2 * inner, hidden), "down": (tokens, hidden, inner), "8192^3": (8192, 8192, 8192)}


def time_products(c, tokens, device, synchronize):
    for name, (rows, out, inner) in product_shapes(c, tokens).items():
        x = torch.randn(rows, inner, device=device, dtype=torch.bfloat16)
        w = torch.randn(out, inner, device=device, dtype=torch.bfloat16)
        times = []
        for _ in range(8):
            synchronize()
            begin = time.perf_counter()
            for _ in range(5):
                F.linear(x, w)
            synchronize()
            times.append((time.perf_counter() - begin) / 5)
        seconds = statistics.median(times[2:])
        yield {"case": f"torch product {name}", "shape": [rows, out, inner], "median_us": round(1e6 * seconds, 1),
               "TFLOP/s": round(2e-12 * rows * out * inner / seconds, 1)}


def train(c, options, device, synchronize):
    torch.manual_seed(1)
    with torch.device(device):
        model = Model(c).to(torch.bfloat16)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=c.get("initializer_range", 0.02))
    if not options.eager:
        for block in model.blocks:
            block.compile()
        model.loss = torch.compile(model.loss)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    length = options.sequence_length
    cos, sin = rotation(c, length, device, torch.bfloat16)
    tokens = torch.randint(0, c["vocab_size"], (options.micro_batch, length + 1), device=device)
    seconds, losses = [], []
    for _ in range(options.steps):
        begin = time.perf_counter()
        for _ in range(options.accumulation):
            loss = model(tokens[:, :-1], tokens[:, 1:].contiguous(), cos, sin) / options.accumulation
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        synchronize()
        seconds.append(time.perf_counter() - begin)
        losses.append(float(loss.detach()) * options.accumulation)
        print(f"step {len(losses)}  loss {losses[-1]:.4f}  {seconds[-1]:.3f} s", flush=True)
    step = statistics.median(seconds[min(LEFT_OUT, len(seconds) - 1):])
    rate = options.micro_batch * options.accumulation * length / step
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    peak = PEAK_FLOPS.get(name)
    return {"case": "torch eager" if options.eager else "torch.compile", "device": name, "torch": torch.__version__,
            "steps": options.steps, "seconds": round(step, 4), "tokens_per_second": round(rate, 1),
            "mfu": round(flops_per_token(c, length) * rate / peak, 4) if peak else None,
            "peak_bytes": torch.cuda.max_memory_allocated() if device == "cuda" else None, "losses": losses}


def main():
    parser = argparse.ArgumentParser(description="A bench row's job, trained by PyTorch.")
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("--micro-batch", type=int, default=16)
    parser.add_argument("--accumulation", type=int, default=4)
    parser.add_argument("--sequence-length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("SKIPPED: torch sees no GPU")
        return 77
    c = json.loads(options.config.read_text())
    synchronize = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    print(json.dumps(train(c, options, options.device, synchronize)), flush=True)
    torch.cuda.empty_cache()
    if options.device == "cuda":
        for row in time_products(c, options.micro_batch * options.sequence_length, options.device, synchronize):
            print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
