#include "runtime/program/program.h"

namespace strata::runtime {

std::vector<std::string> Program::collective_sequence() const {
  std::vector<std::string> lines;
  for (const Instruction& in : instructions) {
    if (!in.collective) continue;
    const comm::Collective& c = *in.collective;
    std::string line = name + ": " + in.label + " " + std::string(name_of(c.kind)) + " over " +
                       comm::to_string(c.axes) + " " + std::string(strata::name_of(c.input_type)) +
                       "/" + std::string(strata::name_of(c.wire_type)) + " [";
    for (std::int64_t bound : c.partition.bounds) line += " " + std::to_string(bound);
    lines.push_back(line + " ]");
  }
  return lines;
}

std::string Program::to_string() const {
  const auto device = static_cast<std::size_t>(Tier::device);
  std::string text = "program " + name + ": " + std::to_string(instructions.size()) +
                     " instructions, device arena " + std::to_string(arena_bytes[device]) +
                     " bytes: " + std::to_string(persistent_bytes[device]) + " kept, " +
                     std::to_string(arena_bytes[device] - persistent_bytes[device]) +
                     " within a step, of these at most " + std::to_string(live_bytes[device]) +
                     " in use at a time\n";
  const auto operand = [&](const Operand& o) {
    const Value& value = values[o.value];
    return describe(value) + ":" + o.type.to_string() + runtime::to_string(value.distribution) +
           (o.tier == Tier::device ? "" : " " + std::string(name_of(o.tier))) + "@" +
           std::to_string(o.offset_bytes);
  };
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& in = instructions[i];
    text += std::to_string(i) + " [" + std::string(name_of(in.queue)) + ", " + blocks[in.block] +
            ", " + std::string(name_of(in.pass)) + "] " + in.label + " = " +
            std::string(in.operation->name) + " {" +
            (in.collective ? "axes=" + comm::to_string(in.collective->axes) +
                                 " wire=" + std::string(strata::name_of(in.collective->wire_type))
                           : in.attributes.to_string()) +
            "}";
    if (in.predicate) text += " if " + operand(*in.predicate);
    for (const Operand& o : in.inputs) text += " in " + operand(o);
    for (const Operand& o : in.outputs) text += " out " + operand(o);
    if (in.workspace)
      text += " workspace @" + std::to_string(in.workspace->offset_bytes) + "+" +
              std::to_string(in.workspace->bytes);
    if (!in.waits.empty() || in.border_waits != 0) {
      text += " waits";
      for (std::int32_t w : in.waits) text += " " + std::to_string(w);
      if (in.border_waits != 0) text += " border";
    }
    text += "\n";
  }
  return text;
}

}  // namespace strata::runtime
