"""Reads ZeRO 1, 2 and 3: flat groups of parameters, with a part of each in every rank's file."""
import collections
import math

import torch

from deepspeed_files import MOMENTS, Contents, Parameter, note_groups
from refused import Refused

Place = collections.namedtuple("Place", "start numel")


def read_zero(files):
    ranks = [files.load(path)["optimizer_state_dict"] for path in files.listed("*zero_pp_rank_*_mp_rank_00_optim_states.pt")]
    stage = int(ranks[0].get("zero_stage", 1))  # absent in DeepSpeed's BF16_Optimizer, which is stage 1
    check_count(files, ranks)
    contents = Contents("zero %d" % stage)
    contents.scaler = ranks[0].get("loss_scaler")
    key = "optimizer_state_dict" if stage == 3 else "base_optimizer_state"
    states = [group_states(files, contents, rank.get(key)) for rank in ranks]
    masters = [rank["fp32_flat_groups" if stage == 3 else "single_partition_of_fp32_groups"] for rank in ranks]
    groups = files.common["param_shapes"]
    if len(masters[0]) != len(groups):
        raise Refused("%s: %d flat groups for %d lists of parameters; save it again with DeepSpeed 0.9 or newer" % (
            files.folder, len(masters[0]), len(groups)))
    if stage == 3:
        places = [[places_in_parts(shapes, rank, len(ranks)) for shapes in groups] for rank in range(len(ranks))]
    elif all("param_slice_mappings" in rank for rank in ranks):
        places = [rank["param_slice_mappings"] for rank in ranks]
    else:
        places = [[places_in_row(shapes, rank, masters[0][g].numel()) for g, shapes in enumerate(groups)]
                  for rank in range(len(ranks))]
    contents.parameters = [
        join(files, name, shape, [(masters[rank][g], states[rank][g], places[rank][g].get(name)) for rank in range(len(ranks))])
        for g, shapes in enumerate(groups) for name, shape in shapes.items()]
    return contents


def check_count(files, ranks):
    count = ranks[0].get("partition_count", len(ranks))
    count = max(count) if isinstance(count, list) else count
    if count != len(ranks):
        raise Refused("%s: %d files *_optim_states.pt, written by %d ranks; some are missing, or of another save" % (
            files.folder, len(ranks), count))


def group_states(files, contents, optimizer):
    if not isinstance(optimizer, dict):
        raise Refused("%s: the optimizer's state is elastic, or offloaded to a disk; save with \"elastic_checkpoint\": false "
                      "and without NVMe, or use --weights-only" % files.folder)
    return note_groups(contents, optimizer)


def places_in_parts(shapes, rank, world):
    """Returns the places of ZeRO 3, which cuts every parameter into equal parts and pads the last ones."""
    places, start = {}, 0
    for name, shape in shapes.items():
        elements = math.prod(shape)
        part = -(-elements // world)
        places[name] = Place(start, max(0, min(part, elements - rank * part)))
        start += part
    return places


def places_in_row(shapes, rank, part):
    """Returns the places of ZeRO 1 and 2 before DeepSpeed 0.9, which did not store them: parameters in a row, cut into equal parts."""
    places, begin = {}, 0
    for name, shape in shapes.items():
        end = begin + math.prod(shape)
        low, high = max(begin, rank * part), min(end, (rank + 1) * part)
        if low < high:
            places[name] = Place(low - rank * part, high - low)
        begin = end
    return places


def join(files, name, shape, parts):
    """Joins a parameter from the ranks' parts of its group: [(flat master, state, place or None)]."""
    parts = [(master, state, place) for master, state, place in parts if place is not None and place.numel]
    found = sum(place.numel for _, _, place in parts)
    if found != math.prod(shape):
        raise Refused("%s: parameter '%s' has %d elements in the ranks' files, expected %d; a file is missing, or of "
                      "another save" % (files.folder, name, found, math.prod(shape)))

    def joined(flat_of):
        def load():
            return torch.cat([flat_of(master, state).reshape(-1)[place.start:place.start + place.numel].float()
                              for master, state, place in parts]).view(list(shape))
        return load

    moments = {ours: joined(lambda master, state, theirs=theirs: state[theirs])
               for theirs, ours in MOMENTS.items() if all(theirs in state for _, state, _ in parts)}
    return Parameter(name, shape, master=joined(lambda master, state: master), moments=moments)
