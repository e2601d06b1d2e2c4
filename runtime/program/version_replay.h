// The verifier's replay of a Program: who reads which version of which bytes (graph.h, Value).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/program/program.h"

namespace strata::runtime {

/// "#12 'norm layer.0.matrices'"
std::string describe_instruction(const Program& program, std::int32_t index);

/// Calls visit(operand) for everything that an instruction touches.
template <typename Visit>
void for_each_operand(const Instruction& instruction, const Visit& visit) {
  for (const Operand& o : instruction.inputs) visit(o);
  for (const Operand& o : instruction.outputs) visit(o);
  if (instruction.predicate) visit(*instruction.predicate);
  if (instruction.workspace) visit(*instruction.workspace);
}

/// Replays the instructions in list order and reports each that reads a version which its bytes do
/// not hold, or writes one that is not later than theirs, and each parameter and optimizer state
/// that ends with two versions. `roots` gives the root of every value; persistent roots of one name
/// are one. Takes time in proportion to instructions and roots, not to rows or bytes.
void replay_versions(const Program& program, const std::vector<ValueId>& roots,
                     const std::function<void(std::string)>& report);

}  // namespace strata::runtime
