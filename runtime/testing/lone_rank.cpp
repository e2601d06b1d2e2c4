#include "runtime/testing/lone_rank.h"

#include <cstring>
#include <random>

#include "kernels/ops/step_state.h"
#include "runtime/graph/state_names.h"
#include "runtime/program/lower.h"

namespace strata::runtime {

LoneRank::LoneRank(Graph graph, ValueId loss, std::uint64_t seed) : units_(graph.units) {
  for (ValueId gradient : graph.unit_gradients)
    if (gradient != kNoValue) {
      const ValueId root = graph.root_of(gradient);
      graph.make_persistent(root, graph.values[root].name);
    }
  graph.make_persistent(loss, "loss");
  layout_.add_all(graph);
  Program lowered =
      lower(std::move(graph), layout_, {"alone", machine::typical_machine(device_.capabilities())});
  const std::int64_t arena_bytes = lowered.arena_bytes[static_cast<int>(Tier::device)];
  arena_ = Arena("device", arena_bytes, ArenaKind::private_memory);
  std::memset(arena_.base(), 0xff, static_cast<std::size_t>(arena_bytes));
  ExecutorParts parts;
  parts.arenas[static_cast<int>(Tier::device)] = &arena_;
  executor_ = make_cpu_executor(std::move(parts), kernels::cpu_kernels(), stream_, stream_);
  executor_->load(std::move(lowered));
  fill_inputs(seed);
}

LoneRank::~LoneRank() = default;

void LoneRank::fill_inputs(std::uint64_t seed) {
  const auto tokens = storage<std::int32_t>("tokens"), targets = storage<std::int32_t>("targets");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i * 7 % 50);
    targets[i] = static_cast<std::int32_t>(i * 11 % 50);
  }
  const auto rng = storage<std::int64_t>("rng");
  for (std::size_t i = 0; i < rng.size(); ++i) rng[i] = static_cast<std::int64_t>(i);
  storage<std::int64_t>(kStepTargets)[0] = static_cast<std::int64_t>(targets.size());
  const kernels::StepState state;
  std::memcpy(bytes(kStepState).data(), &state, sizeof state);
  std::mt19937_64 random(seed);
  for (const ParameterUnit& unit : units_)
    for (float& value : storage<float>(parameter_name(unit.name)))
      value = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-53 - 0.5);
}

std::span<std::byte> LoneRank::bytes(const std::string& name) const {
  const PersistentValue& value = layout_.find(name);
  return {arena_.base() + value.offset_bytes, static_cast<std::size_t>(value.type.span_bytes())};
}

double LoneRank::run() {
  executor_->start(0, 0);
  executor_->wait_all();
  return storage<double>("loss")[0];
}

}  // namespace strata::runtime
