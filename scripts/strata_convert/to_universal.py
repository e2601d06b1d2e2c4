"""to-deepspeed-universal: makes a folder that DeepSpeed loads with "load_universal": true from a Strata checkpoint."""
import contextlib
import math
import os

import torch

from deepspeed_files import MOMENTS
from folders import appearing_folder, sync, write_file
from refused import Refused, note
from strata_checkpoint import StrataCheckpoint

# The version whose loader was tested; loaders refuse checkpoints without a version.
DEEPSPEED_VERSION = "0.19.8"
# DeepSpeed loads as many of its parameter groups as a checkpoint lists and silently leaves out the others.
LISTED_GROUPS = 1024


def run(arguments):
    checkpoint = StrataCheckpoint(arguments.step_dir)
    check_optimizer(checkpoint)
    tag = "global_step%d_universal" % checkpoint.step
    os.makedirs(arguments.out, exist_ok=True)
    with appearing_folder(os.path.join(arguments.out, tag)) as staging:
        write_zero_folder(checkpoint, os.path.join(staging, "zero"), arguments)
        for name in ("mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_model_states.pt"):  # the first is for ZeRO 1 and 2, the other for 3
            save(common_state(checkpoint), os.path.join(staging, name))
    point_latest(arguments.out, tag)
    return os.path.join(arguments.out, tag)


def check_optimizer(checkpoint):
    optimizer, dtype = checkpoint.state["optimizer"], checkpoint.state["dtype"]
    if optimizer not in ("adamw", "adam", "lion"):
        raise Refused("%s: has state of %s, which a universal checkpoint has no place for; for the weights alone give "
                      "DeepSpeed's model this folder: it is a Hugging Face model" % (checkpoint.folder, optimizer))
    if optimizer == "lion":
        note("Lion has one moment: DeepSpeed loads this with ZeRO 1 and 2, not 3")
    if dtype == "fp16":
        scale = checkpoint.scalar("loss_scale")
        note("the loss scale is %g, but DeepSpeed begins with its configuration's: set fp16.initial_scale_power to %d" % (
            scale, round(math.log2(scale))))


def write_zero_folder(checkpoint, folder, arguments):
    # torch.optim counts in a tensor, DeepSpeed's optimizers in an integer; neither can go on from the other's.
    updates = checkpoint.scalar("updates")
    step = torch.tensor(float(updates)) if arguments.torch_adam else updates
    for name in checkpoint.tensors["model"]:
        place = os.path.join(folder, arguments.name_prefix + name)
        os.makedirs(place)
        save(step, os.path.join(place, "step.pt"))
        save({"param": checkpoint.master(name).clone()}, os.path.join(place, "fp32.pt"))
        for theirs, ours in MOMENTS.items():
            moment = checkpoint.moment(ours, name)
            if moment is not None:
                save({"param": moment.clone()}, os.path.join(place, theirs + ".pt"))
    # Groups list no other settings, so those of DeepSpeed's configuration hold.
    settings = {} if arguments.learning_rate is None else {"lr": arguments.learning_rate}
    groups = [{"params": [], **settings} for _ in range(LISTED_GROUPS)]
    save({"ds_version": DEEPSPEED_VERSION, "param_groups": groups,
          "optimizer_state_dict": {"state": {0: {"step": step}}, "param_groups": groups[:1]}},
         os.path.join(folder, "optimizer_state.pt"))


def common_state(checkpoint):
    """Returns what DeepSpeed's engine reads besides tensors; it passes on keys that it does not know as client_state."""
    state, updates = checkpoint.state, checkpoint.scalar("updates")
    return {
        "module": {}, "buffer_names": [], "optimizer": None, "param_shapes": None, "shared_params": None,
        # DeepSpeed's schedulers load the first number, PyTorch's the others.
        "lr_scheduler": {"last_batch_iteration": updates - 1, "last_epoch": updates, "_step_count": updates + 1,
                         "lr_lambdas": []},
        "skipped_steps": checkpoint.scalar("skipped"), "global_steps": state["step"],
        "global_samples": state["consumed_samples"], "dp_world_size": 1, "mp_world_size": 1,
        "ds_version": DEEPSPEED_VERSION, "universal_checkpoint_info": {"universal_checkpoint_version": 0.2},
        "ds_config": {"train_batch_size": state["global_batch"], "bf16": {"enabled": state["dtype"] == "bf16"},
                      "fp16": {"enabled": state["dtype"] == "fp16"}},
        "consumed_samples": state["consumed_samples"], "strata": state,
    }


def save(value, path):
    torch.save(value, path)
    sync(path)


def point_latest(out, tag):
    path = os.path.join(out, "latest_universal")
    with contextlib.suppress(FileNotFoundError):
        os.remove(path + ".tmp")
    write_file(path + ".tmp", tag.encode())
    os.replace(path + ".tmp", path)
    sync(out)
