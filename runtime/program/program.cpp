#include "runtime/program/program.h"

#include <fmt/core.h>

#include "core/round_up.h"
#include "runtime/graph/transfer_node.h"
#include "runtime/program/arena_alignment.h"

namespace strata::runtime {

std::int64_t touched_bytes(const Instruction& in, const Operand& operand) {
  const bool is_predicate = in.predicate && &operand == &*in.predicate;
  const bool is_moved = !is_predicate && is_disk_transfer(*in.operation);
  return is_moved ? round_up(operand.bytes, kDiskAlignment) : operand.bytes;
}

std::vector<std::string> Program::collective_sequence() const {
  std::vector<std::string> lines;
  for (const Instruction& in : instructions) {
    if (!in.collective) continue;
    const comm::Collective& c = *in.collective;
    std::string line = name + ": " + in.label + " " + std::string(name_of(c.kind)) + " over " +
                       comm::to_string(c.axes) + " " + std::string(strata::name_of(c.input_type)) +
                       "/" + std::string(strata::name_of(c.wire_type)) + " [";
    for (std::int64_t bound : c.partition.bounds) line += fmt::format(" {}", bound);
    lines.push_back(line + " ]");
  }
  return lines;
}

std::string Program::to_string() const {
  const auto device = static_cast<std::size_t>(Tier::device);
  std::string text = fmt::format(
      "program {}: {} instructions, device arena {} bytes: {} kept, {} within a step, of these at "
      "most {} in use at a time\n",
      name, instructions.size(), arena_bytes[device], persistent_bytes[device],
      arena_bytes[device] - persistent_bytes[device], live_bytes[device]);
  const auto operand = [&](const Operand& o) {
    const Value& value = values[o.value];
    return fmt::format(
        "{}:{}{}{}@{}", describe(value), o.type.to_string(), runtime::to_string(value.distribution),
        o.tier == Tier::device ? "" : " " + std::string(name_of(o.tier)), o.offset_bytes);
  };
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& in = instructions[i];
    text += fmt::format("{} [{}, {}, {}] {} = {} {{{}}}", i, name_of(in.queue), blocks[in.block],
                        name_of(in.pass), in.label, in.operation->name,
                        in.collective ? "axes=" + comm::to_string(in.collective->axes) + " wire=" +
                                            std::string(strata::name_of(in.collective->wire_type))
                                      : in.attributes.to_string());
    if (in.predicate) text += " if " + operand(*in.predicate);
    for (const Operand& o : in.inputs) text += " in " + operand(o);
    for (const Operand& o : in.outputs) text += " out " + operand(o);
    if (in.workspace)
      text += fmt::format(" workspace @{}+{}", in.workspace->offset_bytes, in.workspace->bytes);
    if (!in.waits.empty() || in.border_waits != 0) {
      text += " waits";
      for (std::int32_t w : in.waits) text += fmt::format(" {}", w);
      if (in.border_waits != 0) text += " border";
    }
    text += "\n";
  }
  return text;
}

}  // namespace strata::runtime
