#include "runtime/execute/bound_instruction.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "core/round_up.h"
#include "runtime/graph/transfer_node.h"
#include "runtime/program/arena_alignment.h"

namespace strata::runtime {
namespace {

kernels::Tensor tensor(const Operand& operand, const ExecutorParts& parts) {
  // An empty operand lies nowhere, yet communicators want an address inside the device's arena.
  if (operand.bytes == 0 && operand.tier != Tier::device)
    return {operand.type, parts.arenas[static_cast<int>(Tier::device)]->base()};
  const Arena* arena = parts.arenas[static_cast<int>(operand.tier)];
  STRATA_CHECK(arena != nullptr && operand.offset_bytes + operand.bytes <= arena->bytes(),
               "operand outside its arena at", operand.offset_bytes, operand.bytes);
  return {operand.type, arena->base() + operand.offset_bytes};
}

/// Checks tiers: what computes on the device has its operands there, what runs on the host has them
/// in host memory; copies and disk transfers go between tiers.
void check_places(const Instruction& in) {
  const bool copies = in.operation->name == "copy" || is_disk_transfer(*in.operation);
  const auto check = [&](const Operand& o) {
    const bool right =
        in.on_host ? o.tier == Tier::pinned || o.tier == Tier::pageable : o.tier == Tier::device;
    STRATA_CHECK(copies || right || o.bytes == 0, in.label, "works in tier", name_of(o.tier));
  };
  for (const Operand& o : in.inputs) check(o);
  for (const Operand& o : in.outputs) check(o);
  if (in.workspace) check(*in.workspace);
}

DiskTransfer disk_transfer(const Program& program, const Instruction& in,
                           const ExecutorParts& parts) {
  const bool write = in.outputs[0].tier == Tier::disk;
  const Operand& on_disk = write ? in.outputs[0] : in.inputs[0];
  const Operand& in_memory = write ? in.inputs[0] : in.outputs[0];
  const std::int64_t bytes = round_up(on_disk.bytes, kDiskAlignment);
  const Arena* arena = parts.arenas[static_cast<int>(in_memory.tier)];
  STRATA_CHECK(parts.disk != nullptr && on_disk.offset_bytes + bytes <= parts.disk->bytes(),
               in.label, on_disk.offset_bytes, bytes);
  STRATA_CHECK(arena != nullptr && in_memory.offset_bytes + bytes <= arena->bytes() &&
                   on_disk.offset_bytes % kDiskAlignment == 0 &&
                   in_memory.offset_bytes % kDiskAlignment == 0,
               in.label, in_memory.offset_bytes, bytes);
  return {on_disk.offset_bytes,
          {arena->base() + in_memory.offset_bytes, static_cast<std::size_t>(bytes)},
          write,
          on_disk.offset_bytes >= program.persistent_bytes[static_cast<int>(Tier::disk)]};
}

}  // namespace

BoundInstruction bind_instruction(const Program& program, const Instruction& in,
                                  const ExecutorParts& parts, const kernels::KernelTable& kernels,
                                  std::string_view backend) {
  BoundInstruction bound;
  check_places(in);
  if (is_disk_transfer(*in.operation)) {
    bound.disk = disk_transfer(program, in, parts);
  } else {
    for (const Operand& o : in.inputs) bound.inputs.push_back(tensor(o, parts));
    for (const Operand& o : in.outputs) bound.outputs.push_back(tensor(o, parts));
  }
  if (in.workspace)
    bound.workspace = {tensor(*in.workspace, parts).data,
                       static_cast<std::size_t>(in.workspace->bytes)};
  if (in.predicate)
    bound.predicate = reinterpret_cast<const std::uint32_t*>(tensor(*in.predicate, parts).data);
  if (in.collective) {
    bound.communicator = &parts.communicators.of(in.collective->axes);
    return bound;
  }
  if (is_disk_transfer(*in.operation)) return bound;
  const bool beside = in.on_host && in.queue == Queue::host;
  STRATA_CHECK(!beside || parts.host_kernels != nullptr, in.label, "needs the host's kernels");
  bound.kernel = (beside ? *parts.host_kernels : kernels).find(in.operation->name);
  if (bound.kernel == nullptr)
    throw InternalError("the backend '" + std::string(beside ? "cpu" : backend) +
                        "' has no kernel for operation '" + std::string(in.operation->name) +
                        "' (instruction " + in.label + ")");
  return bound;
}

bool reads_staged_input(const Program& program, const Instruction& in) {
  return std::ranges::any_of(in.inputs, [&](const Operand& o) {
    return o.tier == Tier::pinned && program.values[o.value].role == Role::input;
  });
}

}  // namespace strata::runtime
