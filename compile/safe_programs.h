// Holds compiled Programs against the verifier.
#pragma once

#include "compile/step_programs.h"

namespace strata::compile {

/// Throws InternalError if the verifier finds one of the Programs unsafe to run: the compiler that
/// made it is broken.
void require_safe(const StepPrograms& programs);

}  // namespace strata::compile
