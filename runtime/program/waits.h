// The waits pass: finds instructions of other queues that must end before each one starts.
#pragma once

#include "runtime/program/program.h"

namespace strata::runtime {

/// Fills Instruction::waits and border_waits from operand byte ranges in list order.
void place_waits(Program& program);

}  // namespace strata::runtime
