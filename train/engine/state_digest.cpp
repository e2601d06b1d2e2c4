#include "train/engine/state_digest.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/json_writer.h"
#include "runtime/graph/parameter_unit.h"
#include "runtime/graph/state_names.h"
#include "step/optimizer_storage.h"

namespace strata::train {
namespace {

static_assert(kCellElements == runtime::kCellElements, "digests have the cells of flat space");

/// A digest travels as four 32-bit limbs in int64 words, so that an integer all-reduce can add it.
constexpr int kLimbs = 4;
/// Elements read at a time. The digest of a range is the sum of the digests of its parts, which
/// begin at borders of cells.
constexpr std::int64_t kChunkElements = 1 << 22;

void add_limbs(const Digest& digest, std::int64_t* limbs) {
  limbs[0] += static_cast<std::int64_t>(digest.low & 0xffffffffu);
  limbs[1] += static_cast<std::int64_t>(digest.low >> 32);
  limbs[2] += static_cast<std::int64_t>(digest.high & 0xffffffffu);
  limbs[3] += static_cast<std::int64_t>(digest.high >> 32);
}

Digest from_limbs(const std::int64_t* limbs) {
  std::uint64_t part[kLimbs], carry = 0;
  for (int i = 0; i < kLimbs; ++i) {
    carry += static_cast<std::uint64_t>(limbs[i]);
    part[i] = carry & 0xffffffffu;
    carry >>= 32;
  }
  return {part[0] | part[1] << 32, part[2] | part[3] << 32};
}

/// The text of a double or an int64; equal text means equal values.
std::string scalar_text(DType dtype, std::span<const std::byte> bytes) {
  if (dtype == DType::i64) {
    std::int64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return std::to_string(number);
  }
  double number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return json_number(number);
}

/// Lines for the scalars, which every rank keeps alike.
std::string describe_scalars(const Engine& engine) {
  std::vector<std::byte> buffer;
  const compile::StepPrograms& set = engine.programs();
  std::string text;
  for (const step::StateEntry& entry : step::list_state(
           set.units, set.settings, step::StateScope::held, step_state(engine).updates))
    if (entry.kind == "scalar")
      text += entry.name + " scalar " + std::string(name_of(entry.dtype)) + " " +
              scalar_text(entry.dtype, engine.read(entry, 0, entry.window.elements, buffer)) + "\n";
  return text;
}

}  // namespace

kernels::StepState step_state(const Engine& engine) {
  kernels::StepState state;
  std::vector<std::byte> buffer;
  std::memcpy(&state, engine.read(runtime::kStepState, buffer).data(), sizeof state);
  return state;
}

/// Returns how many values of their cell lie before value `first` of the entry's window.
static std::int64_t place_in_cell(const step::StateEntry& entry, std::int64_t first) {
  const step::WindowRun run = runs_of(entry.window, first, 1).front();
  return (entry.tensor_begin + run.tensor_element) % (kCellElements / entry.elements_per_value);
}

Digest entry_digest(const Engine& engine, const step::StateEntry& entry) {
  const std::int64_t size = size_of(entry.dtype);
  Digest sum;
  std::vector<std::byte> buffer;
  for (std::int64_t first = 0, count = 0; first < entry.window.elements; first += count) {
    count = std::min(kChunkElements - place_in_cell(entry, first), entry.window.elements - first);
    const std::span<const std::byte> bytes = engine.read(entry, first, count, buffer);
    for (const step::WindowRun& run : runs_of(entry.window, first, count))
      sum += range_digest(entry.name, entry.kind, entry.tensor_begin, run.tensor_element,
                          bytes.subspan(static_cast<std::size_t>(run.element * size),
                                        static_cast<std::size_t>(run.elements * size)),
                          size, entry.elements_per_value);
  }
  return sum;
}

std::string describe_state(Engine& engine) {
  const compile::StepPrograms& set = engine.programs();
  std::vector<std::string> lines;  // "name kind dtype", in unit order
  std::map<std::string, std::size_t> line_of;
  for (std::size_t u = 0; u < set.units.size(); ++u) {
    const runtime::UnitRecipe& recipe = set.settings.plan.units[u].recipe;
    for (const runtime::Segment& segment : set.units[u].segments) {
      const auto add = [&](const std::string& kind, DType dtype) {
        line_of[segment.name + " " + kind] = lines.size();
        lines.push_back(segment.name + " " + kind + " " + std::string(name_of(dtype)));
      };
      add("parameter", recipe.dtype);
      for (const step::OptimizerState& state : step::optimizer_states(recipe))
        add(state.kind, state.dtype);
    }
  }
  std::vector<std::int64_t> limbs(lines.size() * kLimbs, 0);
  for (const step::StateEntry& entry : step::list_state(
           set.units, set.settings, step::StateScope::saved, step_state(engine).updates)) {
    if (entry.kind == "scalar") continue;
    std::int64_t* sum = &limbs[line_of.at(entry.name + " " + entry.kind) * kLimbs];
    add_limbs(entry_digest(engine, entry), sum);
  }
  engine.sum_over_ranks(limbs);
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += lines[i] + " " + from_limbs(&limbs[i * kLimbs]).hex() + "\n";
  return text + describe_scalars(engine);
}

}  // namespace strata::train
