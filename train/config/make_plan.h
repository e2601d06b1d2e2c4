// From options to what Plans are made of: the only place where settings of a run become policy
// data.
#pragma once

#include "kernels/device/attributes.h"
#include "plan/choices.h"
#include "train/config/options.h"

namespace strata::train {

/// Sets each segment's weight decay from the optimizer's and the no-decay rule.
void apply_weight_decay(std::vector<runtime::ParameterUnit>& units, const TrainOptions& options);

/// What is sharded, recomputed and sent away, and in which micro-steps: what another Plan for the
/// same step may do otherwise.
plan::Choices choices_of(const TrainOptions& options);

/// All else: mesh, types, the length of sequences, limits. plan::with_choices makes a Plan of both.
runtime::Plan plan_frame(const TrainOptions& options, int world);

/// Numbers of the optimizer and the step's rules as attributes of their operations.
kernels::Attributes optimizer_attributes(const TrainOptions& options);
kernels::Attributes control_attributes(const TrainOptions& options);

/// Loss scale that the first step uses, 1 without scaling.
double initial_loss_scale(const TrainOptions& options);

}  // namespace strata::train
