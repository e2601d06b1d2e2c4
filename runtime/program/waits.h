// The waits pass: which instruction of another queue must be done before each instruction starts.
#pragma once

#include "runtime/program/program.h"

namespace strata::runtime {

/// Fills Instruction::waits and border_waits from operand byte ranges in list order.
void place_waits(Program& program);

}  // namespace strata::runtime
