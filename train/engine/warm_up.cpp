#include "train/engine/warm_up.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/shown_collective.h"
#include "core/round_up.h"
#include "runtime/execute/arena.h"
#include "runtime/execute/bound_instruction.h"

namespace strata::train {
namespace {

using comm::Collective;
using comm::CollectiveKind;
using runtime::Instruction;
using runtime::Tier;

constexpr std::chrono::microseconds kPoll{100};
constexpr std::int64_t kRoomBytes = 256;  ///< a multiple of every alignment that libraries ask for

constexpr std::int64_t padded(std::int64_t bytes) { return round_up(bytes, kRoomBytes); }

/// The same collective with one element of each rank.
Collective smallest(const Collective& like, int world) {
  Collective small = like;
  small.partition.bounds.clear();
  for (std::int64_t rank = 0; rank <= world; ++rank) small.partition.bounds.push_back(rank);
  return small;
}

/// True for kinds whose one operand is both input and output.
bool is_in_place(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
}

class WarmUp {
 public:
  WarmUp(kernels::Device& device, comm::Communicator& communicator,
         const compile::StepPrograms& programs, const Beat& beat)
      : device_(device), communicator_(communicator), beat_(beat) {
    for (const auto& [key, program] : programs.programs) programs_.push_back(&program);
    find_collectives();
    moved_to_ = padded(programs.arena_bytes(Tier::device));
    std::int64_t more = 0;
    for (const runtime::Program* program : programs_)
      for (const Instruction& in : program->instructions) more = std::max(more, bytes_to_move(in));
    for (const auto& [kind, largest] : collectives_)
      more = std::max(more, places_of(smallest(*largest.in->collective, world())).end);
    arena_ = runtime::Arena(device, kernels::MemoryKind::device, moved_to_ + padded(more));
  }

  void run() {
    device_.bind_thread();
    const auto stream = device_.make_stream();
    communicator_.register_arena({arena_.base(), arena_.bytes(), -1});
    for (const runtime::Program* program : programs_)
      for (const Instruction& in : program->instructions)
        if (is_new(in)) run_bound(*stream, *program, in);
    // Collectives run one at a time: each may have to connect peers.
    for (const auto& [kind, largest] : collectives_) {
      const comm::ShownCollective shown(communicator_, "connect ranks");
      run_smallest(*stream, *largest.in->collective);
      run_bound(*stream, *largest.program, *largest.in);
    }
    wait(*stream);
    communicator_.unregister_arena(arena_.base());
  }

 private:
  /// Offsets in the arena of a collective's operands.
  struct Places {
    std::int64_t output = 0, workspace = 0, end = 0;
  };
  struct Largest {
    const runtime::Program* program = nullptr;
    const Instruction* in = nullptr;
  };

  [[nodiscard]] int world() const { return communicator_.size(); }

  [[nodiscard]] Places places_of(const Collective& collective) const {
    const comm::OperandBytes bytes = operand_bytes(collective, communicator_.rank());
    Places places;
    places.output = is_in_place(collective.kind) ? 0 : padded(bytes.input);
    places.workspace = places.output + padded(bytes.output);
    places.end = places.workspace + padded(communicator_.workspace_bytes(collective));
    return places;
  }

  /// Finds the collectives in the order of the Programs, which is the same on all ranks.
  void find_collectives() {
    for (const runtime::Program* program : programs_)
      for (const Instruction& in : program->instructions) {
        if (!in.collective || !is_on_device(in)) continue;
        const Collective& c = *in.collective;
        Largest& largest = collectives_[{c.kind, c.input_type, c.wire_type}];
        if (largest.in == nullptr ||
            c.partition.total() > largest.in->collective->partition.total())
          largest = {program, &in};
      }
  }

  static bool is_on_device(const runtime::Operand& operand) { return operand.tier == Tier::device; }
  static bool is_on_device(const Instruction& in) {
    const auto lies_there = [](const runtime::Operand& o) { return is_on_device(o); };
    return std::ranges::all_of(in.inputs, lies_there) &&
           std::ranges::all_of(in.outputs, lies_there);
  }

  /// True if a kernel of the device runs the instruction.
  static bool is_operation(const Instruction& in) {
    return in.queue == runtime::Queue::compute && !in.collective && !in.on_host;
  }

  /// True if no earlier instruction had this operation with these operand types; remembers it.
  bool is_new(const Instruction& in) {
    if (!is_operation(in)) return false;
    std::string key(in.operation->name);
    for (const auto* operands : {&in.inputs, &in.outputs})
      for (const runtime::Operand& operand : *operands) key += ' ' + operand.type.to_string();
    return met_.insert(key).second;
  }

  /// Bytes of an operation's operands in pinned memory (inputs, metrics), not allocated yet.
  static std::int64_t bytes_to_move(const Instruction& in) {
    std::int64_t bytes = 0;
    if (is_operation(in))
      for (const auto* operands : {&in.inputs, &in.outputs})
        for (const runtime::Operand& operand : *operands)
          if (!is_on_device(operand)) bytes += padded(operand.bytes);
    return bytes;
  }

  /// The same instruction, with those operands moved to the device.
  [[nodiscard]] Instruction moved(Instruction in) const {
    std::int64_t next = moved_to_;
    for (auto* operands : {&in.inputs, &in.outputs})
      for (runtime::Operand& operand : *operands) {
        if (is_on_device(operand)) continue;
        operand.tier = Tier::device;
        operand.offset_bytes = std::exchange(next, next + padded(operand.bytes));
      }
    in.predicate.reset();
    return in;
  }

  void run_bound(kernels::Stream& stream, const runtime::Program& program,
                 const Instruction& planned) {
    const Instruction in = moved(planned);
    runtime::ExecutorParts parts;
    parts.arenas[static_cast<std::size_t>(Tier::device)] = &arena_;
    parts.communicators.add(comm::MeshAxis::data, communicator_);
    const runtime::BoundInstruction bound =
        bind_instruction(program, in, parts, device_.kernels(), device_.backend());
    // Earlier runs have left results where this one has its operands, tokens among them.
    wait(stream);
    beat_();
    for (const runtime::Operand& input : in.inputs)
      if (input.bytes > 0) device_.clear_now(arena_.base() + input.offset_bytes, input.bytes);
    if (in.collective)
      bound.communicator->run(stream, *in.collective, bound.inputs[0].data, bound.outputs[0].data,
                              bound.workspace);
    else
      bound.kernel(stream, {bound.inputs, bound.outputs, bound.workspace, in.attributes});
  }

  void run_smallest(kernels::Stream& stream, const Collective& like) const {
    const Collective small = smallest(like, world());
    const Places places = places_of(small);
    communicator_.run(stream, small, arena_.base(), arena_.base() + places.output,
                      {arena_.base() + places.workspace,
                       static_cast<std::size_t>(places.end - places.workspace)});
  }

  /// Waits until the stream has reached this point; throws if a peer dies meanwhile.
  void wait(kernels::Stream& stream) const {
    const auto done = device_.make_event(kernels::EventUse::host);
    device_.record(stream, *done);
    while (!device_.reached(*done)) {
      std::this_thread::sleep_for(kPoll);
      communicator_.check();
    }
  }

  kernels::Device& device_;
  comm::Communicator& communicator_;
  const Beat& beat_;
  std::vector<const runtime::Program*> programs_;
  std::map<std::tuple<CollectiveKind, DType, DType>, Largest> collectives_;
  std::set<std::string> met_;
  runtime::Arena arena_;
  std::int64_t moved_to_ = 0;  ///< offset in arena_, after what the Programs use
};

}  // namespace

void warm_up(kernels::Device& device, comm::Communicator& communicator,
             const compile::StepPrograms& programs, const Beat& beat) {
  WarmUp(device, communicator, programs, beat).run();
}

}  // namespace strata::train
