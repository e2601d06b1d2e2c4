#include "train/inspect/stored_digests.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/json_writer.h"
#include "core/round_up.h"
#include "kernels/ops/adamw_8bit.h"
#include "train/checkpoint/trainer_state.h"
#include "train/files/digest.h"
#include "train/inspect/batches.h"
#include "train/models/hf_config.h"
#include "train/models/transformer.h"

namespace strata::train {
namespace {

constexpr const char* kConfigName = "config.json";
/// The kinds of the optimizer's state, in the order of step::optimizer_states.
constexpr std::array<std::string_view, 6> kKinds{"master",  "remainder",     "moment1",
                                                 "moment2", "moment1_scale", "moment2_scale"};

/// One line of the result, and what its digest is computed from.
struct Line {
  std::string name;
  std::string kind;
  std::size_t tensor = 0;
  std::int64_t flat_begin = 0;  ///< place in flat space, counted in values
  std::int64_t elements_per_value = 1;
  Digest digest;
};

std::vector<runtime::ParameterUnit> units_of(const TensorFolder& folder) {
  const auto text = folder.small_file(kConfigName);
  if (!text)
    throw DataError(folder.path() + ": has no " + kConfigName +
                    ", which says where tensors lie in a model; digests depend on that");
  try {
    const ModelConfig config = parse_model_config(*text, folder.path() + "/" + kConfigName);
    return build_model(config, {}, ModelUse::evaluate).graph.units;
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

/// The tensors of a folder by kind and name; require_empty() finds those that no line took.
class Inventory {
 public:
  explicit Inventory(const TensorFolder& folder) : folder_(folder) {
    for (std::size_t t = 0; t < folder.tensors().size(); ++t) {
      const TensorFolder::Tensor& tensor = folder.tensors()[t];
      const std::string& name = tensor.stored.name;
      if (!tensor.optimizer) {
        left_.emplace(std::pair("parameter", name), t);
        continue;
      }
      const std::size_t dot = name.find('.');
      if (dot == std::string::npos)
        throw DataError(tensor.stored.file + ": tensor '" + name + "' is not named KIND.NAME");
      const std::string kind = name.substr(0, dot);
      if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
        throw DataError(tensor.stored.file + ": tensor '" + name + "' has the kind '" + kind +
                        "', which this version of Strata does not know");
      left_.emplace(std::pair(kind, name.substr(dot + 1)), t);
    }
  }

  [[nodiscard]] bool take(const runtime::Segment& segment, const std::string& kind,
                          std::vector<Line>& lines) {
    const auto found = left_.find({kind, segment.name});
    if (found == left_.end()) return false;
    Line line{.name = segment.name, .kind = kind, .tensor = found->second};
    left_.erase(found);
    if (kind.ends_with("_scale")) line.elements_per_value = kernels::kQuantizedBlock;
    const auto value_at = [&line](std::int64_t element) {
      return divide_up(element, line.elements_per_value);
    };
    line.flat_begin = value_at(segment.offset_elements);
    std::vector<std::int64_t> shape;
    for (int i = 0; i < segment.shape.ndim(); ++i) shape.push_back(segment.shape[i]);
    if (line.elements_per_value > 1)
      shape = {value_at(segment.offset_elements + segment.elements) - line.flat_begin};
    const StoredTensor& stored = folder_.tensors()[line.tensor].stored;
    if (stored.shape != shape)
      throw DataError(stored.file + ": tensor '" + stored.name + "' has shape " +
                      stored.shape_text() + ", but " + kConfigName + " asks for " +
                      StoredTensor{.shape = shape}.shape_text());
    lines.push_back(std::move(line));
    return true;
  }

  void require_empty() const {
    if (left_.empty()) return;
    const StoredTensor& stored = folder_.tensors()[left_.begin()->second].stored;
    throw DataError(stored.file + ": tensor '" + stored.name + "' is none of the model of " +
                    kConfigName);
  }

 private:
  const TensorFolder& folder_;
  std::map<std::pair<std::string, std::string>, std::size_t> left_;  ///< keyed by kind and name
};

std::vector<Line> lines_of(const TensorFolder& folder) {
  Inventory inventory(folder);
  std::vector<Line> lines;
  for (const runtime::ParameterUnit& unit : units_of(folder))
    for (const runtime::Segment& segment : unit.segments) {
      if (!inventory.take(segment, "parameter", lines))
        throw DataError(folder.path() + ": misses tensor '" + segment.name + "', which " +
                        kConfigName + " asks for");
      for (const std::string_view kind : kKinds)
        (void)inventory.take(segment, std::string(kind), lines);
    }
  inventory.require_empty();
  return lines;
}

std::string describe_scalars(const TensorFolder& folder) {
  const auto text = folder.small_file(kTrainerStateName);
  if (!text) return "";
  std::string lines;
  const TrainerState state = parse_trainer_state(*text, folder.path() + "/" + kTrainerStateName);
  for (const TrainerState::Scalar& scalar : state.scalars) {
    lines += scalar.name + " scalar ";
    if (const auto* whole = std::get_if<std::int64_t>(&scalar.value))
      lines += fmt::format("{} {}\n", name_of(DType::i64), *whole);
    else
      lines += std::string(name_of(DType::f64)) + " " +
               json_number(std::get<double>(scalar.value)) + "\n";
  }
  return lines;
}

}  // namespace

std::string describe_stored_state(const TensorFolder& folder, int threads) {
  std::vector<Line> lines = lines_of(folder);
  const auto& tensors = folder.tensors();
  std::vector<TensorPart> parts;
  std::vector<std::size_t> line_of_part;
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::int64_t part_elements = kPartBytes / folder.bytes_of({lines[i].tensor, 0, 1});
    for (const TensorPart& part :
         cut_tensor(lines[i].tensor, tensors[lines[i].tensor].stored.elements(), part_elements,
                    lines[i].flat_begin)) {
      parts.push_back(part);
      line_of_part.push_back(i);
      bytes.push_back(folder.bytes_of(part));
    }
  }
  std::vector<Digest> of_part(parts.size());
  for_each_batch(bytes, threads, [&](std::size_t first, std::size_t end) {
    std::vector<std::byte> buffer;
    const auto views = folder.read(std::span(parts).subspan(first, end - first), buffer);
    for (std::size_t i = first; i < end; ++i) {
      const Line& line = lines[line_of_part[i]];
      of_part[i] = range_digest(line.name, line.kind, line.flat_begin, parts[i].first_element,
                                views[i - first], size_of(*tensors[line.tensor].stored.dtype),
                                line.elements_per_value);
    }
  });
  for (std::size_t i = 0; i < parts.size(); ++i) lines[line_of_part[i]].digest += of_part[i];
  std::string text;
  for (const Line& line : lines)
    text += line.name + " " + line.kind + " " + tensors[line.tensor].type_text() + " " +
            line.digest.hex() + "\n";
  return text + describe_scalars(folder);
}

}  // namespace strata::train
