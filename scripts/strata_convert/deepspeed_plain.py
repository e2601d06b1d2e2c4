"""Reads ZeRO 0: one optimizer over whole parameters, which it numbers and does not name."""
import itertools
import types

from deepspeed_files import MOMENTS, Contents, Parameter, note_groups
from refused import Refused


def read_plain(files):
    contents, optimizer = Contents("zero 0"), files.common.get("optimizer")
    if not isinstance(optimizer, dict):
        contents.parameters = [Parameter(name, tensor.shape) for name, tensor in files.module_parameters.items()]
        return contents
    states = note_groups(contents, optimizer.get("optimizer_state_dict", optimizer))
    if "cur_scale" in optimizer:
        contents.scaler = types.SimpleNamespace(**{key: value for key, value in optimizer.items()
                                                   if key in ("cur_scale", "cur_iter", "last_overflow_iter")})
    flat = optimizer.get("fp32_groups_flat")
    groups = named_groups(files, contents.groups, flat is not None)
    if flat is not None:
        contents.parameters = cut_flat(groups, flat, states)
        return contents
    masters = [master for group in optimizer.get("fp32_groups", []) for master in group]
    parameters = list(itertools.chain(*groups))
    for (name, tensor), master, state in zip(parameters, masters or [None] * len(parameters), states):
        contents.parameters.append(whole_parameter(files, name, tensor, master, state))
    return contents


def named_groups(files, groups, flat):
    """Returns lists of (name, tensor), one per group of the optimizer, in the module's order. If there are two groups, one has
    the matrices and the other the vectors, which have no weight decay."""
    parameters = list(files.module_parameters.items())
    matrices, vectors = ([p for p in parameters if (p[1].dim() > 1) == is_matrix] for is_matrix in (True, False))
    named = [parameters]
    if len(groups) == 2:
        decays = [group.get("weight_decay", 0) for group in groups]
        named = [matrices, vectors] if decays[0] >= decays[1] else [vectors, matrices]
    counts = [len(group["params"]) for group in groups]
    if len(named) != len(groups) or not flat and counts != [len(group) for group in named]:
        raise Refused("%s: the optimizer has groups of %s parameters without names, which cannot be told apart; save with "
                      "ZeRO 1, or use --weights-only" % (files.folder, counts))
    return named


def whole_parameter(files, name, tensor, master, state):
    for found in [master] * (master is not None) + [state[theirs] for theirs in MOMENTS if theirs in state]:
        if found.shape != tensor.shape:
            raise Refused("%s: the optimizer has shape %s where '%s' is expected, which has %s: its order is not the "
                          "module's; save with ZeRO 1, or use --weights-only" % (
                              files.folder, list(found.shape), name, list(tensor.shape)))
    master = tensor if master is None else master
    moments = {ours: lambda theirs=theirs: state[theirs].float() for theirs, ours in MOMENTS.items() if theirs in state}
    return Parameter(name, tensor.shape, master=lambda: master.float(), moments=moments)


def cut_flat(groups, flat, states):
    """Makes 16-bit parameters whose fp32 copies lie in one row per group."""
    parameters = []
    for group, row, state in zip(groups, flat, states):
        sizes = [tensor.numel() for _, tensor in group]

        def cut(whole, begin, tensor):
            return lambda: whole.reshape(-1)[begin:begin + tensor.numel()].float().view(tensor.shape)

        for (name, tensor), end in zip(group, itertools.accumulate(sizes)):
            begin = end - tensor.numel()
            parameters.append(Parameter(name, tensor.shape, master=cut(row, begin, tensor), moments={
                ours: cut(state[theirs], begin, tensor) for theirs, ours in MOMENTS.items() if theirs in state}))
    return parameters
