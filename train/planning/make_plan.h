// From options to a Plan: the only place where settings of a run become policy data.
#pragma once

#include "runtime/graph/plan.h"
#include "step/step.h"
#include "train/config/options.h"

namespace strata::train {

/// Sets each segment's weight decay from the optimizer's and the no-decay rule.
void apply_weight_decay(std::vector<runtime::ParameterUnit>& units, const TrainOptions& options);

/// Units, gradient types and limits.
runtime::Plan make_plan(const TrainOptions& options,
                        const std::vector<runtime::ParameterUnit>& units, int world);

/// The optimizer and the step's rules as attributes of their operations.
step::OptimizerSettings optimizer_settings(const TrainOptions& options);
kernels::Attributes control_attributes(const TrainOptions& options);

/// Loss scale that the first step uses, 1 without scaling.
double initial_loss_scale(const TrainOptions& options);

}  // namespace strata::train
