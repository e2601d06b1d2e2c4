// Turns options into policy data for Plans; the only place that does.
#pragma once

#include "kernels/device/attributes.h"
#include "plan/choices.h"
#include "train/config/options.h"

namespace strata::train {

/// Sets each segment's weight decay from the optimizer's and the no-decay rule.
void apply_weight_decay(std::vector<runtime::ParameterUnit>& units, const TrainOptions& options);

/// The choices that the options make: what is sharded, recomputed and offloaded, in which
/// micro-steps. Another Plan for the same step may choose otherwise.
plan::Choices choices_of(const TrainOptions& options);

/// Everything else in a Plan: mesh, types, lengths, limits. plan::with_choices combines both.
runtime::Plan plan_frame(const TrainOptions& options, int data_ranks);

/// Attributes of the optimizer's and step_control's operations.
kernels::Attributes optimizer_attributes(const TrainOptions& options);
kernels::Attributes control_attributes(const TrainOptions& options);

/// The loss scale of the first step; 1 without scaling.
double initial_loss_scale(const TrainOptions& options);

}  // namespace strata::train
