#include "runtime/program/rehearsal.h"

#include <algorithm>
#include <map>

#include "runtime/graph/transfer_node.h"

namespace strata::runtime {
namespace {

/// A kind of instruction, by the first of its Program.
struct Kind {
  int first = 0;
  std::int64_t ns = 0;  ///< foreseen for one
  std::int64_t total_ns = 0;
};

const Value& root_of(const Program& program, const Operand& operand) {
  const Value& value = program.values[static_cast<std::size_t>(operand.value)];
  return value.root == kNoValue ? value : program.values[static_cast<std::size_t>(value.root)];
}

bool is_integer(DType type) { return type == DType::i32 || type == DType::i64; }

bool can_run_alone(const Program& program, const Instruction& in) {
  if (in.demand.signature == 0 || is_disk_transfer(*in.operation)) return false;
  // The word of a step and what is decided by it stay as they are.
  const auto decides = [&](const Operand& out) {
    const Value& root = root_of(program, out);
    return root.role == Role::control && root.storage == Storage::persistent;
  };
  if (std::ranges::any_of(in.outputs, decides)) return false;
  return std::ranges::none_of(in.inputs, [&](const Operand& input) {
    return is_integer(input.type.dtype) &&
           root_of(program, input).storage != Storage::persistent;
  });
}

/// The first of each kind of collective. Their times differ between ranks, so none decides.
std::vector<int> choose_collectives(const Program& program, const RehearsalLimits& limits,
                                    const std::set<std::uint64_t>& known) {
  std::set<std::uint64_t> kinds = known;
  std::vector<int> chosen;
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& in = program.instructions[static_cast<std::size_t>(i)];
    if (in.collective && can_run_alone(program, in) &&
        static_cast<int>(chosen.size()) < limits.collectives &&
        kinds.insert(in.demand.signature).second)
      chosen.push_back(i);
  }
  return chosen;
}

/// Kinds that compute or copy, those that take most of a step first; equal ones in the order of the
/// list.
std::vector<Kind> list_kinds(const Program& program, const machine::Machine& machine,
                             const std::set<std::uint64_t>& known) {
  std::map<std::uint64_t, Kind> kinds;
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& in = program.instructions[static_cast<std::size_t>(i)];
    if (in.collective || known.contains(in.demand.signature) || !can_run_alone(program, in))
      continue;
    const auto [at, fresh] = kinds.try_emplace(in.demand.signature);
    if (fresh) at->second = {i, machine::foreseen_ns(machine, in.demand), 0};
    at->second.total_ns += at->second.ns;
  }
  std::vector<Kind> list;
  for (const auto& [signature, kind] : kinds) list.push_back(kind);
  std::ranges::sort(list, [](const Kind& a, const Kind& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.first < b.first;
  });
  return list;
}

}  // namespace

Rehearsal make_rehearsal(const Program& program, const machine::Machine& machine,
                         const RehearsalLimits& limits, std::set<std::uint64_t>& known) {
  std::vector<int> chosen = choose_collectives(program, limits, known);
  double left_ns = limits.seconds * 1e9;
  for (const Kind& kind : list_kinds(program, machine, known)) {
    const double needed_ns = static_cast<double>(kind.ns) * limits.repeats;
    if (kind.ns < limits.least_ns || needed_ns > left_ns) continue;
    left_ns -= needed_ns;
    chosen.push_back(kind.first);
  }
  std::ranges::sort(chosen);  // what one leaves, the next may read, as in a step

  Rehearsal rehearsal;
  rehearsal.program = program;
  rehearsal.program.name = "rehearsal of " + program.name;
  std::vector<Instruction>& list = rehearsal.program.instructions;
  list.clear();
  std::set<std::string> written;
  for (int repeat = 0; repeat < limits.repeats; ++repeat)
    for (const int i : chosen) {
      Instruction in = program.instructions[static_cast<std::size_t>(i)];
      known.insert(in.demand.signature);
      for (const Operand& out : in.outputs)
        if (const Value& root = root_of(program, out); root.storage == Storage::persistent)
          written.insert(root.name);
      in.predicate.reset();
      in.border_waits = (std::uint32_t{1} << kQueues) - 1;
      in.waits.clear();
      if (!list.empty() && list.back().queue != in.queue)
        in.waits.push_back(static_cast<std::int32_t>(list.size()) - 1);
      list.push_back(std::move(in));
    }
  rehearsal.written.assign(written.begin(), written.end());
  return rehearsal;
}

}  // namespace strata::runtime
