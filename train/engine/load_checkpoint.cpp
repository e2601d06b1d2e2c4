#include "train/engine/load_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cpu/initial_values.h"
#include "kernels/math/float16.h"
#include "kernels/ops/initialize.h"
#include "train/engine/saved_state.h"
#include "train/files/convert.h"

namespace strata::train {
namespace {

using Part = CheckpointReader::Part;
using Tensor = CheckpointReader::Tensor;

/// Elements that are read at a time into memory outside the engine.
constexpr std::int64_t kBufferElements = std::int64_t{1} << 22;

/// The way in which the checkpoint gives the elements of an entry.
enum class Source : std::uint8_t {
  as_is,      ///< the same kind and type
  converted,  ///< the same kind, another type
  master,     ///< made from stored masters
  remainder,  ///< made from stored parameters and remainders
  parameter,  ///< made from stored parameters
};

class Load {
 public:
  Load(Engine& engine, const CheckpointReader& reader) : engine_(engine), reader_(reader) {}

  std::vector<std::string> run(const std::vector<step::StateEntry>& entries) {
    engine_.require_drained("load_checkpoint");
    for (const step::StateEntry& entry : entries)
      if (entry.kind == "remainder") packed_.insert(entry.name);
    for (const step::StateEntry& entry : entries)
      if (entry.kind != "scalar") load(entry);
    refuse_what_has_no_place(SavedState(engine_.programs()).layout());
    reader_.read(in_place_);
    return {notes_.begin(), notes_.end()};
  }

 private:
  [[nodiscard]] const Tensor* stored(const std::string& kind, const std::string& name) const {
    return kind == "parameter" ? reader_.find(Part::model, name)
                               : reader_.find(Part::optimizer, optimizer_tensor_name(kind, name));
  }

  /// Refuses weights of a larger model and state of another optimizer. Masters and remainders may
  /// be left out: parameters follow from what is stored.
  void refuse_what_has_no_place(const CheckpointLayout& layout) const {
    std::set<std::string> places;
    for (const CheckpointLayout::PlacedTensor& tensor : layout.tensors())
      places.insert(tensor.spec.name);
    for (const Tensor& tensor : reader_.tensors()) {
      const std::string& name = tensor.stored.name;
      if (places.contains(name)) continue;
      if (reader_.find(Part::model, name) == &tensor)
        throw DataError("cannot resume: " + reader_.directory() + " has weights '" + name +
                        "', and this model has none of that name; use the config.json of this "
                        "checkpoint as --model");
      if (!name.starts_with("master.") && !name.starts_with("remainder."))
        throw ConfigError("cannot resume: " + reader_.directory() + " has optimizer state '" +
                          name + "', and this run keeps none of that name" +
                          unit_text(name.substr(name.find('.') + 1)) + other_recipe());
    }
  }

  void load(const step::StateEntry& entry) {
    const Source source = source_of(entry);
    if (source == Source::as_is && in_host_memory(entry)) {
      add_ranges(*stored(entry.kind, entry.name), runs_of(entry.window),
                 &step::WindowRun::storage_element, engine_.storage(entry), in_place_);
      return;
    }
    for (std::int64_t first = 0; first < entry.window.elements; first += kBufferElements) {
      const std::int64_t count = std::min(kBufferElements, entry.window.elements - first);
      engine_.write(entry, first,
                    elements(entry, source, runs_of(entry.window, first, count), count));
    }
  }

  [[nodiscard]] bool in_host_memory(const step::StateEntry& entry) const {
    return entry.tier != runtime::Tier::disk && engine_.arena(entry.tier).on_host();
  }

  Source source_of(const step::StateEntry& entry) {
    const bool weight =
        entry.kind == "parameter" || entry.kind == "master" || entry.kind == "remainder";
    if (const Tensor* same = stored(entry.kind, entry.name)) {
      check_shape(*same, entry);
      if (same->stored.dtype == entry.dtype)
        return makes_remainder(entry) ? Source::master : Source::as_is;
      if (!weight) return converted_moment(*same, entry);
    } else if (!weight) {
      throw ConfigError(
          said_of(entry, "has no tensor '" + optimizer_tensor_name(entry.kind, entry.name) + "'") +
          unit_text(entry.name) + other_recipe());
    }
    return weight_source(entry);
  }

  /// True for parameters to which a remainder is made from a stored master. They are made from it,
  /// too: others may have rounded them otherwise, and the two would be another master.
  [[nodiscard]] bool makes_remainder(const step::StateEntry& entry) const {
    return entry.kind == "parameter" && packed_.contains(entry.name) &&
           stored("remainder", entry.name) == nullptr && stored("master", entry.name) != nullptr;
  }

  Source converted_moment(const Tensor& same, const step::StateEntry& entry) {
    const auto is_float = [](DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; };
    if (!same.stored.dtype || !is_float(*same.stored.dtype) || !is_float(entry.dtype))
      throw ConfigError(said_of(entry, "keeps '" + same.stored.name + "' as " +
                                           same.stored.stored_type + ", which cannot become " +
                                           std::string(name_of(entry.dtype))) +
                        unit_text(entry.name) + other_recipe());
    notes_.insert(entry.kind + " was stored as " + std::string(name_of(*same.stored.dtype)) +
                  ", is kept as " + std::string(name_of(entry.dtype)));
    return Source::converted;
  }

  Source weight_source(const step::StateEntry& entry) {
    const Tensor* parameter = stored("parameter", entry.name);
    if (parameter == nullptr)
      refuse(entry, "has no weights '" + entry.name +
                        "'; use the config.json of this checkpoint as --model");
    check_shape(*parameter, entry);
    Source source = Source::parameter;
    std::string from = "stored parameters (" + parameter->stored.stored_type + ")";
    if (stored("master", entry.name) != nullptr) {
      source = Source::master;
      from = "stored masters";
    } else if (stored("remainder", entry.name) != nullptr) {
      source = Source::remainder;
      from = "stored parameters and remainders";
    }
    notes_.insert(entry.kind + "s (" + std::string(name_of(entry.dtype)) + ") are made from " +
                  from);
    return source;
  }

  void check_shape(const Tensor& tensor, const step::StateEntry& entry) const {
    std::vector<std::int64_t> expected;
    for (int i = 0; i < entry.shape.ndim(); ++i) expected.push_back(entry.shape[i]);
    if (tensor.stored.shape == expected) return;
    refuse(entry, "has '" + tensor.stored.name + "' of shape " + tensor.stored.shape_text() +
                      ", this run needs " + entry.shape.to_string() +
                      "; use the config.json of this checkpoint as --model");
  }

  [[nodiscard]] std::string said_of(const step::StateEntry& entry, const std::string& what) const {
    return "cannot resume " + entry.kind + " of '" + entry.name + "': " + reader_.directory() +
           " " + what;
  }
  [[noreturn]] void refuse(const step::StateEntry& entry, const std::string& what) const {
    throw DataError(said_of(entry, what));
  }

  /// Says what this run's Plan does with the unit of a tensor of the model.
  [[nodiscard]] std::string unit_text(const std::string& tensor) const {
    const std::vector<runtime::ParameterUnit>& units = engine_.programs().units;
    for (std::size_t u = 0; u < units.size(); ++u) {
      if (std::ranges::find(units[u].segments, tensor, &runtime::Segment::name) ==
          units[u].segments.end())
        continue;
      const runtime::UnitRecipe& recipe = engine_.programs().settings.plan.units[u].recipe;
      return " (unit '" + units[u].name + "', which this run " +
             (recipe.trainable ? "trains with " + recipe.optimizer.operation : "does not train") +
             ")";
    }
    return "";
  }

  /// Advice for a checkpoint that is whole, but from a run that kept its state otherwise.
  [[nodiscard]] std::string other_recipe() const {
    return "; go on with the optimizer and the --state-recipe or --plan that saved it, or start "
           "from its weights (--model " +
           reader_.directory() + ")";
  }

  using Runs = std::vector<step::WindowRun>;
  using Ranges = std::vector<CheckpointReader::Range>;

  /// Adds to `ranges` a read for each run of a tensor, into `to` at the run's member `place`.
  static void add_ranges(const Tensor& tensor, const Runs& runs,
                         std::int64_t step::WindowRun::*place, std::span<std::byte> to,
                         Ranges& ranges) {
    const std::int64_t size = size_of(*tensor.stored.dtype);
    for (const step::WindowRun& run : runs)
      ranges.push_back({&tensor, run.tensor_element, run.elements,
                        to.subspan(static_cast<std::size_t>(run.*place * size),
                                   static_cast<std::size_t>(run.elements * size))});
  }

  /// Reads `count` stored elements of a tensor; valid until the next call with the same buffer.
  std::span<const std::byte> stored_bytes(const Tensor& tensor, const Runs& runs,
                                          std::int64_t count, std::vector<std::byte>& buffer) {
    buffer.resize(static_cast<std::size_t>(count * size_of(*tensor.stored.dtype)));
    Ranges ranges;
    add_ranges(tensor, runs, &step::WindowRun::element, buffer, ranges);
    reader_.read(ranges);
    return buffer;
  }

  std::span<const std::byte> elements(const step::StateEntry& entry, Source source,
                                      const Runs& runs, std::int64_t count) {
    if (source == Source::as_is)
      return stored_bytes(*stored(entry.kind, entry.name), runs, count, stored_);
    std::vector<float> values(static_cast<std::size_t>(count));
    const auto convert = [&](const std::string& kind) {
      const Tensor& tensor = *stored(kind, entry.name);
      const std::span<const std::byte> bytes = stored_bytes(tensor, runs, count, stored_);
      convert_elements(*tensor.stored.dtype, bytes.data(), DType::f32,
                       reinterpret_cast<std::byte*>(values.data()), count);
    };
    if (source == Source::remainder)
      unpack(entry, runs, values);
    else
      convert(source == Source::converted ? entry.kind
                                          : (source == Source::master ? "master" : "parameter"));
    result_.resize(static_cast<std::size_t>(count * size_of(entry.dtype)));
    if (source == Source::converted)
      convert_elements(DType::f32, reinterpret_cast<const std::byte*>(values.data()), entry.dtype,
                       result_.data(), count);
    else
      kernels::store_initial_values(values, entry.dtype, result_.data());
    return result_;
  }

  void unpack(const step::StateEntry& entry, const Runs& runs, std::span<float> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    const Tensor &parameters = *stored("parameter", entry.name),
                 &remainders = *stored("remainder", entry.name);
    if (parameters.stored.dtype != DType::bf16 || remainders.stored.dtype != DType::i16)
      refuse(entry, "keeps a remainder beside parameters that are not bf16");
    const std::span<const std::byte> upper = stored_bytes(parameters, runs, count, stored_);
    const std::span<const std::byte> lower = stored_bytes(remainders, runs, count, other_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t parameter = 0;
      std::int16_t remainder = 0;
      std::memcpy(&parameter, upper.data() + i * sizeof parameter, sizeof parameter);
      std::memcpy(&remainder, lower.data() + i * sizeof remainder, sizeof remainder);
      values[i] = kernels::master_from_parts(parameter, remainder);
    }
  }

  Engine& engine_;
  const CheckpointReader& reader_;
  Ranges in_place_;
  std::vector<std::byte> stored_, other_, result_;
  std::set<std::string> packed_;  ///< tensors whose masters this run keeps as remainders
  std::set<std::string> notes_;
};

}  // namespace

std::vector<std::string> load_checkpoint(Engine& engine, const CheckpointReader& reader) {
  const compile::StepPrograms& set = engine.programs();
  return load_checkpoint(engine, reader,
                         step::list_state(set.units, set.settings, step::StateScope::held, 0));
}

std::vector<std::string> load_checkpoint(Engine& engine, const CheckpointReader& reader,
                                         const std::vector<step::StateEntry>& entries) {
  return Load(engine, reader).run(entries);
}

}  // namespace strata::train
