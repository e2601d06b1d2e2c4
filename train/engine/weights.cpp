#include "train/engine/weights.h"

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/round_up.h"
#include "kernels/cpu/initial_values.h"
#include "kernels/ops/initialize.h"

namespace strata::train {
namespace {

constexpr std::int64_t kDrawnElements = 1 << 18;

/// Runs body(first, count) over chunks of `elements` on the pool.
template <typename Body>
void for_chunks(kernels::ThreadPool& pool, std::int64_t elements, const Body& body) {
  pool.parallel_for(divide_up(elements, kDrawnElements), [&](std::int64_t task, int) {
    const std::int64_t first = task * kDrawnElements;
    body(first, std::min(kDrawnElements, elements - first));
  });
}

/// The initial values of an entry's tensor.
kernels::TensorInitializer initializer_of(const step::StateEntry& entry, std::int64_t seed) {
  const std::uint64_t name =
      hash_64(std::as_bytes(std::span(entry.name.data(), entry.name.size())));
  return {.seed = seed,
          .tensor = name >> 1,
          .deviation = std::max(entry.initializer.deviation, 0.0),
          .constant = entry.initializer.constant};
}

/// Initializes elements in the memory of a device, by its own kernel.
class DeviceInitializer {
 public:
  explicit DeviceInitializer(kernels::Device& device)
      : device_(device), kernel_(device.kernels().find("initialize")) {
    STRATA_CHECK(kernel_ != nullptr, device.backend());
    device_.bind_thread();
    stream_ = device_.make_stream();
  }
  /// Enqueues the elements of an entry in the device tier.
  void start(const kernels::TensorInitializer& tensor, const step::StateEntry& entry,
             const Engine& engine) {
    const runtime::PersistentValue& storage = engine.programs().persistent.find(entry.storage);
    STRATA_CHECK(storage.tier == runtime::Tier::device, entry.name);
    std::byte* const to =
        engine.arena().base() + storage.offset_bytes + entry.storage_element * size_of(entry.dtype);
    for (std::int64_t first = 0; first < entry.window.elements; first += kDeviceElements) {
      const std::int64_t count = std::min(kDeviceElements, entry.window.elements - first);
      for (const step::WindowRun& run : runs_of(entry.window, first, count)) {
        const kernels::Attributes attributes =
            tensor.attributes(entry.dtype, run.tensor_element, run.elements);
        const kernels::Tensor out{kernels::TensorType(entry.dtype, {run.elements}),
                                  to + run.storage_element * size_of(entry.dtype)};
        kernel_(*stream_, {{}, {&out, 1}, {}, attributes});
      }
    }
  }
  /// Waits until all elements are there.
  void finish() { device_.synchronize(*stream_); }

 private:
  /// Limit on the elements of one launch.
  static constexpr std::int64_t kDeviceElements = std::int64_t{1} << 28;

  kernels::Device& device_;
  kernels::Kernel kernel_;
  std::unique_ptr<kernels::Stream> stream_;
};

/// The part of `values` that a run of adjacent elements of the tensor fills.
std::span<float> values_of(const step::WindowRun& run, std::span<float> values) {
  return values.subspan(static_cast<std::size_t>(run.element),
                        static_cast<std::size_t>(run.elements));
}

/// Writes fp32 values in the entry's type. A parameter is its master rounded half away (design 5),
/// a remainder what that leaves (0 for values that are bf16 already). `buffer` is scratch.
void store(const Engine& engine, const step::StateEntry& entry, std::int64_t first,
           std::span<const float> values, std::vector<std::byte>& buffer) {
  buffer.resize(values.size() * static_cast<std::size_t>(size_of(entry.dtype)));
  kernels::store_initial_values(values, entry.dtype, buffer.data());
  engine.write(entry, first, buffer);
}

bool is_weight(const step::StateEntry& entry) {
  return entry.kind == "parameter" || entry.kind == "master" || entry.kind == "remainder";
}

/// The entries that this rank keeps; initialized or loaded weights have version 0.
std::vector<step::StateEntry> held_entries(const Engine& engine) {
  return step::list_state(engine.programs().units, engine.programs().settings,
                          step::StateScope::held, 0);
}

void check_shape(const StoredTensor& stored, const step::StateEntry& entry) {
  std::vector<std::int64_t> expected;
  for (int i = 0; i < entry.shape.ndim(); ++i) expected.push_back(entry.shape[i]);
  if (stored.shape == expected) return;
  std::string found = "[";
  for (std::size_t i = 0; i < stored.shape.size(); ++i)
    found += (i == 0 ? "" : ", ") + std::to_string(stored.shape[i]);
  throw DataError(stored.file + ": tensor '" + stored.name + "' has shape " + found +
                  "], but config.json asks for " + entry.shape.to_string() +
                  "; use the config.json that belongs to these weights");
}

}  // namespace

std::string stored_name(const ModelFiles& files, const ModelFamily& family,
                        const std::string& name) {
  if (files.find(name) != nullptr || !name.starts_with(family.prefix)) return name;
  const std::string bare = name.substr(family.prefix.size());
  return files.find(bare) != nullptr ? bare : name;
}

void initialize_weights(Engine& engine, std::int64_t seed) {
  engine.require_drained("initialize_weights");
  std::optional<DeviceInitializer> on_device;
  if (!engine.arena().on_host()) on_device.emplace(engine.arena().device());
  for (const step::StateEntry& entry : held_entries(engine)) {
    if (!is_weight(entry)) continue;
    const kernels::TensorInitializer tensor = initializer_of(entry, seed);
    if (on_device && entry.tier == runtime::Tier::device) {
      on_device->start(tensor, entry, engine);
      continue;
    }
    const auto initializer = kernels::InitialValues::from(
        tensor.attributes(entry.dtype, entry.window.first, entry.window.elements));
    for_chunks(engine.pool(), entry.window.elements, [&](std::int64_t first, std::int64_t count) {
      std::vector<float> values(static_cast<std::size_t>(count));
      for (const step::WindowRun& run : runs_of(entry.window, first, count))
        kernels::initial_values(initializer, run.tensor_element, values_of(run, values));
      std::vector<std::byte> buffer;
      store(engine, entry, first, values, buffer);
    });
  }
  if (on_device) on_device->finish();
}

void load_weights(Engine& engine, const ModelFiles& files, const ModelFamily& family) {
  engine.require_drained("load_weights");
  for (const step::StateEntry& entry : held_entries(engine))
    if (is_weight(entry)) load_entry(engine, files, family, entry);
}

void load_entry(Engine& engine, const ModelFiles& files, const ModelFamily& family,
                const step::StateEntry& entry) {
  const std::string name = stored_name(files, family, entry.name);
  check_shape(files.at(name), entry);
  std::vector<float> values;
  std::vector<std::byte> buffer;
  for (std::int64_t first = 0; first < entry.window.elements; first += kDrawnElements) {
    const std::int64_t count = std::min(kDrawnElements, entry.window.elements - first);
    values.resize(static_cast<std::size_t>(count));
    for (const step::WindowRun& run : runs_of(entry.window, first, count))
      files.read(name, run.tensor_element, run.elements, DType::f32,
                 std::as_writable_bytes(values_of(run, values)));
    store(engine, entry, first, values, buffer);
  }
}

}  // namespace strata::train
