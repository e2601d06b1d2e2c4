#include "train/engine/step_scalars.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/error.h"
#include "train/engine/state_digest.h"

namespace strata::train {
namespace {

std::vector<step::StateEntry> scalar_entries(const Engine& engine) {
  const compile::StepPrograms& set = engine.programs();
  std::vector<step::StateEntry> entries =
      step::list_state(set.units, set.settings, step::StateScope::held, step_state(engine).updates);
  std::erase_if(entries, [](const step::StateEntry& entry) { return entry.kind != "scalar"; });
  return entries;
}

template <typename T>
T value_of(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

std::vector<TrainerState::Scalar> read_scalars(const Engine& engine) {
  std::vector<TrainerState::Scalar> scalars;
  std::vector<std::byte> buffer;
  for (const step::StateEntry& entry : scalar_entries(engine)) {
    const std::span<const std::byte> bytes = engine.read(entry, 0, entry.window.elements, buffer);
    if (entry.dtype == DType::i64)
      scalars.push_back({entry.name, value_of<std::int64_t>(bytes)});
    else
      scalars.push_back({entry.name, value_of<double>(bytes)});
  }
  return scalars;
}

void write_scalars(Engine& engine, const std::vector<TrainerState::Scalar>& scalars,
                   const std::string& file) {
  engine.require_drained("write_scalars");
  const std::vector<step::StateEntry> entries = scalar_entries(engine);
  for (const TrainerState::Scalar& scalar : scalars)
    if (std::ranges::none_of(entries, [&](const auto& entry) { return entry.name == scalar.name; }))
      throw DataError(file + ": this version has no scalar '" + scalar.name +
                      "'; resume with the version that saved it");
  for (const step::StateEntry& entry : entries) {
    const auto scalar = std::ranges::find_if(
        scalars, [&](const auto& candidate) { return candidate.name == entry.name; });
    if (scalar == scalars.end())
      throw DataError(file + ": the scalar '" + entry.name +
                      "' is missing; resume with the version that saved it");
    const auto write = [&](const auto& value) {
      engine.write(entry, 0, std::as_bytes(std::span(&value, 1)));
    };
    const bool whole = std::holds_alternative<std::int64_t>(scalar->value);
    if (entry.dtype == DType::i64 && whole)
      write(std::get<std::int64_t>(scalar->value));
    else if (entry.dtype == DType::f64)
      write(whole ? static_cast<double>(std::get<std::int64_t>(scalar->value))
                  : std::get<double>(scalar->value));
    else
      throw DataError(file + ": the scalar '" + entry.name + "' must be a whole number");
  }
}

}  // namespace strata::train
