"""from-deepspeed: makes a Strata checkpoint from one of DeepSpeed's."""
import json

import torch

from deepspeed_checkpoint import STRATA_DTYPES, DeepSpeedCheckpoint
from model_folder import read_config, small_files, write_model_folder
from names import check_head, hugging_face_names
from pickles import Unpickler
from refused import Refused
from strata_checkpoint import STATE_VERSION, write_checkpoint
from tensors import dtype_name, tensor_entry

UNKNOWN_DIGEST = "0" * 32  # DeepSpeed does not know its training data
CURSORS = ("consumed_samples", "consumed_train_samples", "global_samples")


def run(arguments):
    config = read_config(arguments.model)
    checkpoint = DeepSpeedCheckpoint(arguments.dir, arguments.tag, Unpickler(arguments.opaque))
    names = hugging_face_names([parameter.name for parameter in checkpoint.parameters], config.get("model_type"))
    check_head(names.values(), config)
    files = small_files(arguments.model, config, dtype_name(checkpoint.dtype))
    if arguments.weights_only:
        checkpoint.drop_optimizer()
    model = [tensor_entry(names[p.name], checkpoint.dtype, p.shape, p.weight) for p in checkpoint.parameters]
    if arguments.weights_only:
        write_model_folder(arguments.out, model, files)
        return arguments.out
    state = trainer_state(checkpoint, arguments, config)
    files["trainer_state.json"] = (json.dumps(state, indent=2) + "\n").encode()
    facts = {"imported_from": "DeepSpeed %s, %s" % (checkpoint.common.get("ds_version", "unknown"), checkpoint.layout)}
    return write_checkpoint(arguments.out, state["step"], model, optimizer_entries(checkpoint, names), files, facts)


def optimizer_entries(checkpoint, names):
    kinds = moment_kinds(checkpoint)
    entries = []
    for parameter in checkpoint.parameters:
        loads = dict(parameter.moments)
        if checkpoint.dtype != torch.float32:
            loads = {"master": parameter.master} | loads
        entries += [tensor_entry("%s.%s" % (kind, names[parameter.name]), torch.float32, parameter.shape, loads[kind])
                    for kind in loads if kind == "master" or kind in kinds]
    return entries


def moment_kinds(checkpoint):
    """Returns the kinds of moments, which must be the same for all parameters."""
    kinds = sorted(max((p.moments for p in checkpoint.parameters), key=len, default=[]))
    for parameter in checkpoint.parameters:
        if not kinds or sorted(parameter.moments) != kinds:
            raise Refused("%s: of parameter '%s' there are the moments [%s], expected [%s]; Adam, AdamW and Lion can be "
                          "imported, where they train all parameters: use --weights-only for others" % (
                              checkpoint.folder, parameter.name, ", ".join(parameter.moments),
                              ", ".join(kinds or ["moment1"])))
    return kinds


def trainer_state(checkpoint, arguments, config):
    """Makes the content of trainer_state.json (train/checkpoint/trainer_state.h)."""
    scalars = step_scalars(checkpoint)
    context = config.get("n_positions", config.get("max_position_embeddings", 1024))
    return {
        "version": STATE_VERSION, "step": scalars["step_state.updates"] + scalars["step_state.skipped"],
        "consumed_samples": consumed_samples(checkpoint, arguments.consumed_samples), "seed": arguments.seed,
        "global_batch": arguments.global_batch or global_batch(checkpoint),
        "sequence_length": arguments.sequence_length or min(context, 1024), "shuffle": arguments.shuffle == "true",
        "data_digest": UNKNOWN_DIGEST, "data_tokens": 1, "optimizer": arguments.optimizer or optimizer_name(checkpoint),
        "state_recipe": "fp32-master", "dtype": STRATA_DTYPES[checkpoint.dtype], "scalars": scalars,
    }


def consumed_samples(checkpoint, given):
    if given is not None:
        return given
    for key in CURSORS:
        if isinstance(checkpoint.common.get(key), int):
            return checkpoint.common[key]
    raise Refused("%s: does not say how many samples it was trained on; give --consumed-samples" % checkpoint.folder)


def global_batch(checkpoint):
    common = checkpoint.common
    size = (common.get("ds_config") or {}).get("train_batch_size")
    steps, samples = common.get("global_steps") or 0, common.get("global_samples") or 0
    if isinstance(size, int) and size > 0:
        return size
    if steps > 0 and samples > 0 and samples % steps == 0:
        return samples // steps
    raise Refused("%s: does not say how many samples a step has; give --global-batch" % checkpoint.folder)


def optimizer_name(checkpoint):
    if moment_kinds(checkpoint) == ["moment1"]:
        return "lion"
    optimizer = (checkpoint.common.get("ds_config") or {}).get("optimizer")
    parameters = optimizer.get("params") if isinstance(optimizer, dict) else None
    return "adam" if (parameters or {}).get("adam_w_mode") is False else "adamw"


def step_scalars(checkpoint):
    """Returns the fields of kernels/ops/step_state.h, which counts overflows as DeepSpeed does."""
    scaler, updates = checkpoint.scaler, checkpoint.updates()
    betas = checkpoint.groups[0].get("betas") if checkpoint.groups else None
    last_overflow = getattr(scaler, "last_overflow_iter", None)
    values = {
        "loss_scale": float(getattr(scaler, "cur_scale", 1)),
        "hysteresis": int(getattr(scaler, "cur_hysteresis", 1)),
        "scale_step": int(getattr(scaler, "cur_iter", 0)),
        "last_overflow": -1 if last_overflow is None else int(last_overflow),
        "updates": updates,
        "skipped": int(checkpoint.common.get("skipped_steps") or 0),
        "beta1_power": power((betas or (0.9, 0.999))[0], updates),
        "beta2_power": power((betas or (0.9, 0.999))[1], updates),
        "at_floor": 0,
    }
    return {"step_state." + name: value for name, value in values.items()}


def power(beta, updates):
    """Multiplies as often as steps do, to get the same bits."""
    product = 1.0
    for _ in range(updates):
        product *= float(beta)
    return product
