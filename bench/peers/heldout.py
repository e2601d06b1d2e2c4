#!/usr/bin/env python3
"""Compares held-out loss after the same training in Strata (8 ranks, ZeRO-3) and in PyTorch, from the same folder on the same samples.

    bench/peers/heldout.py --python PEERS_PYTHON --data TEXT [--steps 600]

The text is split 90/10. Prints both losses; exits 1 when they differ by more than 0.01. The rate rises over a tenth of the steps and
falls to zero, and gradients are clipped: at a constant rate of 1e-3 this model's training is chaotic when it leaves its plateau after
about 75 steps, so two runs of one engine that differ in the last bit of a sum end up to 0.04 apart.
"""
import argparse, json, os, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIG = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 256, "n_layer": 4, "n_head": 4, "n_embd": 256,
          "n_positions": 128, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "layer_norm_epsilon": 1e-5,
          "activation_function": "gelu_new", "initializer_range": 0.02, "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None}
SEQUENCE, BATCH, RATE = 128, 16, 1e-3
CLIP = 1.0

PEER = """
import sys, json, numpy as np, torch, transformers, torch.nn.functional as F
folder, train, held, rates = sys.argv[1:5]
seq, batch, clip = int(sys.argv[5]), int(sys.argv[6]), float(sys.argv[7])
rates = json.load(open(rates))
torch.set_num_threads(2)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").train()
optimizer = torch.optim.AdamW(model.parameters(), lr=rates[0], betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
def rows(data, starts):
    r = np.stack([data[s:s + seq + 1] for s in starts]).astype(np.int64)
    return torch.from_numpy(r[:, :-1].copy()), torch.from_numpy(r[:, 1:].copy())
def loss_of(x, y, reduction="mean"):
    return F.cross_entropy(model(input_ids=x).logits.flatten(0, 1), y.flatten(), reduction=reduction)
data = np.fromfile(train, dtype=np.uint8)
for t, rate in enumerate(rates):
    x, y = rows(data, [((t * batch + i) * seq) % (len(data) - seq - 1) for i in range(batch)])
    for group in optimizer.param_groups: group["lr"] = rate
    optimizer.zero_grad(); loss = loss_of(x, y); loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip); optimizer.step()
model.eval(); held = np.fromfile(held, dtype=np.uint8); windows = (len(held) - 1) // seq; total = 0.0
with torch.no_grad():
    for first in range(0, windows, 64):
        x, y = rows(held, [w * seq for w in range(first, min(first + 64, windows))])
        total += loss_of(x, y, "sum").double().item()
print(json.dumps({"train": loss.item(), "held_out": total / (windows * seq)}))
"""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--python", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--steps", type=int, default=600)
    p.add_argument("--ranks", type=int, default=8)
    args = p.parse_args()
    scratch = tempfile.mkdtemp(prefix="strata-heldout-")
    text = open(args.data, "rb").read()
    cut = len(text) * 9 // 10
    train, held = os.path.join(scratch, "train.txt"), os.path.join(scratch, "held.txt")
    open(train, "wb").write(text[:cut]); open(held, "wb").write(text[cut:])
    shape = os.path.join(scratch, "shape")
    os.mkdir(shape)
    json.dump(CONFIG, open(os.path.join(shape, "config.json"), "w"))
    program = os.path.join(args.build, "bin", "train")
    subprocess.run([program, "--model", os.path.join(shape, "config.json"), "--data", train, "--steps", "1", "--learning-rate", "0", "--weight-decay", "0",
                    "--sequence-length", "32", "--micro-batch", "1", "--output", os.path.join(scratch, "start")],
                   check=True, stdout=subprocess.DEVNULL)
    folder = os.path.join(scratch, "start", "step-00000001")
    metrics, config, rates = (os.path.join(scratch, name) for name in ("metrics.jsonl", "ds_config.json", "rates.json"))
    json.dump({"gradient_clipping": CLIP,
               "optimizer": {"type": "AdamW", "params": {"lr": RATE, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}},
               "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": RATE, "warmup_type": "linear",
                                                                "warmup_num_steps": args.steps // 10, "total_num_steps": args.steps}}},
              open(config, "w"))
    subprocess.run([os.path.join(args.build, "bin", "mlaunch"), "-np", str(args.ranks), program, "--config", config, "--zero", "3", "--model", folder,
                    "--data", train, "--eval-data", held, "--shuffle", "false", "--no-decay", "none", "--sequence-length", str(SEQUENCE),
                    "--micro-batch", str(BATCH // args.ranks), "--steps", str(args.steps), "--output", "", "--metrics", metrics], check=True)
    ours = [json.loads(line) for line in open(metrics)]
    json.dump([line["learning_rate"] for line in ours if "loss" in line], open(rates, "w"))
    peer = json.loads(subprocess.run([args.python, "-c", PEER, folder, train, held, rates, str(SEQUENCE), str(BATCH), str(CLIP)],
                                     check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    mine = [line["eval_loss"] for line in ours if "eval_loss" in line][-1]
    last = [line["loss"] for line in ours if "loss" in line][-1]
    print(f"Strata   train {last:.6f}  held-out {mine:.6f}   ({args.ranks} ranks, ZeRO-3)")
    print(f"PyTorch  train {peer['train']:.6f}  held-out {peer['held_out']:.6f}")
    sys.exit(0 if abs(mine - peer["held_out"]) <= 0.01 else 1)


if __name__ == "__main__":
    main()
