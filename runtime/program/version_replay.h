// The verifier's replay of a Program: which instruction reads which version of which bytes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/program/program.h"

namespace strata::runtime {

/// Returns, for instance, "#12 'norm layer.0.matrices'".
std::string describe_instruction(const Program& program, std::int32_t index);

/// Calls visit(operand) for every operand of an instruction, workspace and predicate included.
template <typename Visit>
void for_each_operand(const Instruction& instruction, const Visit& visit) {
  for (const Operand& o : instruction.inputs) visit(o);
  for (const Operand& o : instruction.outputs) visit(o);
  if (instruction.predicate) visit(*instruction.predicate);
  if (instruction.workspace) visit(*instruction.workspace);
}

/// Replays the instructions in list order. Reports each that reads a version which its bytes do not
/// hold, or writes one that is not later than theirs, and each parameter and optimizer state that
/// ends with two versions. `roots` gives the root of every value; persistent roots of one name are
/// one. The time grows with instructions and roots, not with rows or bytes.
void replay_versions(const Program& program, const std::vector<ValueId>& roots,
                     const std::function<void(std::string)>& report);

}  // namespace strata::runtime
