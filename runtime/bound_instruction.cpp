#include "runtime/bound_instruction.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"

namespace strata::runtime {
namespace {

kernels::Tensor tensor(const Operand& operand, const ExecutorParts& parts) {
  const Arena* arena = parts.arenas[static_cast<int>(operand.tier)];
  STRATA_CHECK(arena != nullptr && operand.offset_bytes + operand.bytes <= arena->bytes(),
               "operand outside its arena at", operand.offset_bytes, operand.bytes);
  return {operand.type, arena->base() + operand.offset_bytes};
}

}  // namespace

BoundInstruction bind_instruction(const Instruction& in, const ExecutorParts& parts,
                                  const kernels::KernelTable& kernels, std::string_view backend) {
  BoundInstruction bound;
  for (const Operand& o : in.inputs) bound.inputs.push_back(tensor(o, parts));
  for (const Operand& o : in.outputs) bound.outputs.push_back(tensor(o, parts));
  if (in.workspace)
    bound.workspace = {tensor(*in.workspace, parts).data,
                       static_cast<std::size_t>(in.workspace->bytes)};
  if (in.predicate)
    bound.predicate = reinterpret_cast<const std::uint32_t*>(tensor(*in.predicate, parts).data);
  if (in.collective) {
    bound.communicator = &parts.communicators.of(in.collective->axis);
    return bound;
  }
  bound.kernel = kernels.find(in.operation->name);
  if (bound.kernel == nullptr)
    throw InternalError("the backend '" + std::string(backend) + "' has no kernel for operation '" +
                        std::string(in.operation->name) + "' (instruction " + in.label + ")");
  return bound;
}

bool reads_staged_input(const Program& program, const Instruction& in) {
  return std::ranges::any_of(in.inputs, [&](const Operand& o) {
    return o.tier == Tier::pinned && program.values[o.value].role == Role::input;
  });
}

}  // namespace strata::runtime
