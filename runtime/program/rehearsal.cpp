#include "runtime/program/rehearsal.h"

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/graph/state_names.h"
#include "runtime/graph/transfer_node.h"
#include "runtime/program/root_of.h"

namespace strata::runtime {
namespace {

/// A kind of instruction, by the first of its Program.
struct Kind {
  int first = 0;
  std::int64_t ns = 0;  ///< foreseen for one
  std::int64_t total_ns = 0;
  std::vector<int> needs;  ///< copies of inputs that must run before it
};

const Value& root_value(const Program& program, const Operand& operand) {
  return program.values[static_cast<std::size_t>(root_of(program, operand.value))];
}

bool is_integer(DType type) { return type == DType::i32 || type == DType::i64; }

bool is_state_of_steps(const Value& root) {
  return root.storage == Storage::persistent &&
         (root.name == kStepState || root.name == kStepControl || root.name == kStepMetrics ||
          root.name == kUpdateRandom);
}

/// Finds which transient roots hold what the host's inputs hold: those that one copy fills.
class StagedInputs {
 public:
  explicit StagedInputs(const Program& program) : program_(program) {
    for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i)
      for (const Operand& out : program.instructions[static_cast<std::size_t>(i)].outputs)
        if (const Value& root = root_value(program, out); root.storage != Storage::persistent)
          writers_[&root].push_back(i);
  }
  /// Returns the copy that fills the operand's root; nullopt if that is not all that does.
  [[nodiscard]] std::optional<int> copy_of(const Operand& operand) const {
    const auto at = writers_.find(&root_value(program_, operand));
    if (at == writers_.end() || at->second.size() != 1) return {};
    const Instruction& in = program_.instructions[static_cast<std::size_t>(at->second.front())];
    const bool stages = in.operation->name == "copy" && !in.inputs.empty() &&
                        root_value(program_, in.inputs[0]).role == Role::input &&
                        root_value(program_, in.inputs[0]).storage == Storage::persistent;
    return stages ? std::optional(at->second.front()) : std::nullopt;
  }

 private:
  const Program& program_;
  std::map<const Value*, std::vector<int>> writers_;
};

/// Returns the copies that an instruction needs before it; nullopt if it cannot run alone.
std::optional<std::vector<int>> needs_of(const Program& program, const Instruction& in,
                                         const StagedInputs& staged) {
  if (in.demand.signature == 0 || is_disk_transfer(*in.operation)) return {};
  if (in.predicate && in.operation->name == "copy") return {};  // another way of copying
  for (const Operand& out : in.outputs)
    if (is_state_of_steps(root_value(program, out))) return {};
  std::vector<int> copies;
  for (const Operand& input : in.inputs) {
    if (!is_integer(input.type.dtype)) continue;
    if (root_value(program, input).storage == Storage::persistent) continue;
    const std::optional<int> copy = staged.copy_of(input);
    if (!copy) return {};
    copies.push_back(*copy);
  }
  return copies;
}

/// The first of each kind of collective. Their times differ between ranks, so none decides.
std::vector<int> choose_collectives(const Program& program, const RehearsalLimits& limits,
                                    const std::set<std::uint64_t>& known) {
  std::set<std::uint64_t> kinds = known;
  std::vector<int> chosen;
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& in = program.instructions[static_cast<std::size_t>(i)];
    if (in.collective && in.demand.signature != 0 &&
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
  const StagedInputs staged(program);
  std::map<std::uint64_t, Kind> kinds;
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& in = program.instructions[static_cast<std::size_t>(i)];
    if (in.collective || known.contains(in.demand.signature)) continue;
    const auto needs = needs_of(program, in, staged);
    if (!needs) continue;
    const auto [at, fresh] = kinds.try_emplace(in.demand.signature);
    if (fresh) at->second = {i, machine::foreseen_ns(machine, in.demand), 0, *needs};
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
                         RehearsalLimits& limits, std::set<std::uint64_t>& known) {
  std::map<int, int> repeats;  // of instructions, in the order of the list, as in a step
  for (const int i : choose_collectives(program, limits, known)) repeats[i] = limits.repeats;
  for (const Kind& kind : list_kinds(program, machine, known)) {
    if (kind.ns < limits.least_ns) continue;
    const double seconds = 1e-9 * static_cast<double>(kind.ns);
    const int runs = seconds * limits.repeats <= limits.seconds ? limits.repeats
                     : seconds <= limits.seconds                ? 1
                                                                : 0;
    if (runs == 0) continue;
    limits.seconds -= seconds * runs;
    repeats[kind.first] = std::max(repeats[kind.first], runs);  // it may be needed more often
    // Copies run in each turn, since other instructions may have written there after the last one.
    for (const int copy : kind.needs) repeats[copy] = std::max(repeats[copy], runs);
  }

  Rehearsal rehearsal;
  rehearsal.program = program;
  rehearsal.program.name = "rehearsal of " + program.name;
  std::vector<Instruction>& list = rehearsal.program.instructions;
  list.clear();
  std::set<std::string> written;
  for (int turn = 0; turn < limits.repeats; ++turn)
    for (const auto& [i, runs] : repeats) {
      if (turn >= runs) continue;
      Instruction in = program.instructions[static_cast<std::size_t>(i)];
      known.insert(in.demand.signature);
      for (const Operand& out : in.outputs)
        if (const Value& root = root_value(program, out); root.storage == Storage::persistent)
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
