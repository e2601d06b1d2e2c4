// Looks up rows of the token table and adds those of a table of positions if the model has one.
#pragma once

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// ids i32 [N] (each in [0, V)), table P [V,H], positions P [L,H]? -> x A [N,H]. Attributes dtype
/// (A), sequence (<= L). The gradient of the table accumulates into one that exists (tied heads).
const Operation& embedding_operation();
/// ids, dx A [N,H], existing G [V,H]? -> dtable G [V,H], which may take existing's storage.
/// Attributes rows (V), gradient_dtype. Rows of dx with the same id are added in fp32 in their
/// order (a device may first add up pieces, which the ids alone determine); their sum is added to
/// `existing` and rounded to G once.
const Operation& embedding_backward_operation();
/// dx A [N,H] -> dpositions [L,H]: sums over samples in order; positions >= sequence are zero.
/// Attributes sequence, rows (L), gradient_dtype.
const Operation& position_backward_operation();

}  // namespace strata::kernels
