#include "runtime/graph/graph_builder.h"

#include <fmt/core.h>

#include "core/error.h"
#include "kernels/ops/step_state.h"
#include "runtime/graph/state_names.h"

namespace strata::runtime {

using kernels::Attributes;
using kernels::Shape;
using kernels::TensorType;

GraphBuilder::GraphBuilder(DType dtype, std::int64_t batch, std::int64_t sequence)
    : dtype_(dtype), sequence_(sequence) {
  if (batch < 1 || sequence < 1)
    throw InvalidArgument(fmt::format(
        "a graph of {} sequences of {} tokens; expected at least 1 of each", batch, sequence));
  const std::int64_t rows = batch * sequence;
  inputs_.tokens = input("tokens", {DType::i32, Shape{rows}});
  inputs_.targets = input("targets", {DType::i32, Shape{rows}});
  inputs_.rng = input("rng", {DType::i64, Shape{2 + batch}});
}

void GraphBuilder::check_unfinished() const {
  if (is_finished_)
    throw InvalidArgument(
        "this builder's graph is finished; make another builder for another graph");
}

void GraphBuilder::begin_block(std::string name) {
  check_unfinished();
  graph_.add_block(std::move(name));
  matrices_unit_ = vectors_unit_ = -1;
  next_label_ = 0;
}

ValueId GraphBuilder::input(std::string name, TensorType type) {
  Value value;
  value.name = std::move(name);
  value.type = type;
  value.storage = Storage::persistent;
  value.role = Role::input;
  value.distribution = over_data(kernels::sharded(0));
  return graph_.add_value(std::move(value));
}

int GraphBuilder::block_of(const std::string& what) const {
  check_unfinished();
  if (graph_.blocks.empty())
    throw InvalidArgument(what + " comes before the first begin_block(); name its block first");
  return static_cast<int>(graph_.blocks.size()) - 1;
}

void GraphBuilder::check_parts(const std::vector<WeightPart>& parts, std::int64_t cols,
                               std::int64_t padded_rows) {
  if (parts.empty())
    throw InvalidArgument("a parameter has no parts; give at least one name with its rows");
  for (const WeightPart& part : parts) {
    const std::string what = "parameter '" + part.name + "'";
    const int block = block_of(what);
    const std::string place = "block '" + graph_.blocks[block] + "', " + what;
    if (part.rows <= 0 || cols <= 0)
      throw InvalidArgument(
          fmt::format("{}: {} rows of {}; both must be at least 1", place, part.rows, cols));
    if (padded_rows > 0 && padded_rows < part.rows)
      throw InvalidArgument(fmt::format("{}: {} rows padded to {}; pad to at least its own rows",
                                        place, part.rows, padded_rows));
    const auto [known, is_new] = parameters_.try_emplace(part.name, block);
    if (!is_new)
      throw InvalidArgument(place + ": block '" + graph_.blocks[known->second] +
                            "' has one of this name; give each parameter a name of its own");
  }
}

ValueId GraphBuilder::grow_unit(bool matrices, const std::vector<WeightPart>& parts,
                                std::int64_t cols, std::int64_t padded_rows,
                                Initializer initializer) {
  check_parts(parts, cols, padded_rows);
  int& index = matrices ? matrices_unit_ : vectors_unit_;
  if (index < 0) {
    ParameterUnit unit;
    unit.block = static_cast<int>(graph_.blocks.size()) - 1;
    unit.matrices = matrices;
    unit.name = graph_.blocks.back() + (matrices ? ".matrices" : ".vectors");
    index = graph_.add_unit(std::move(unit), dtype_);
  }
  ParameterUnit& unit = graph_.units[index];
  std::int64_t first = -1, rows = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Shape shape = matrices ? Shape{parts[i].rows, cols} : Shape{parts[i].rows};
    const std::int64_t padded = padded_rows > 0 ? padded_rows * cols : shape.elements();
    const int segment = unit.add(parts[i].name, shape, padded, i == 0, initializer);
    if (i == 0) first = unit.segments[segment].offset_elements;
    rows += parts[i].rows;
  }
  ParameterUnit sealed = unit;
  sealed.seal();
  graph_.values[graph_.unit_values[index]].type = TensorType(dtype_, Shape{sealed.elements});
  if (padded_rows > 0) rows = padded_rows;
  return parameter_view(index, first, matrices ? Shape{rows, cols} : Shape{rows}, parts[0].name);
}

ValueId GraphBuilder::parameter_view(int unit, std::int64_t offset_elements, Shape shape,
                                     std::string name) {
  return graph_.add_view(graph_.unit_values[unit], offset_elements * size_of(dtype_),
                         TensorType(dtype_, shape), std::move(name));
}

ValueId GraphBuilder::matrix(std::vector<WeightPart> parts, std::int64_t cols,
                             Initializer initializer) {
  return grow_unit(true, parts, cols, 0, initializer);
}

ValueId GraphBuilder::padded_matrix(std::string name, std::int64_t rows, std::int64_t padded_rows,
                                    std::int64_t cols, Initializer initializer) {
  return grow_unit(true, {{std::move(name), rows}}, cols, padded_rows, initializer);
}

ValueId GraphBuilder::vector(std::vector<WeightPart> parts, Initializer initializer) {
  return grow_unit(false, parts, 1, 0, initializer);
}

std::string GraphBuilder::describe(std::string_view operation,
                                   const std::vector<ValueId>& inputs) const {
  std::string operands;
  for (const ValueId id : inputs)
    operands +=
        (operands.empty() ? "" : ", ") + graph_.values[id].name + " " + graph_.type(id).to_string();
  return "block '" + graph_.blocks.back() + "', " + std::string(operation) + "(" + operands + ")";
}

void GraphBuilder::check_inputs(std::string_view operation,
                                const std::vector<ValueId>& inputs) const {
  const int block = block_of("operation " + std::string(operation));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] < 0 || inputs[i] >= static_cast<ValueId>(graph_.values.size()))
      throw InvalidArgument(
          fmt::format("block '{}', {}: operand {} is no value of this builder; pass what one of "
                      "its methods returned",
                      graph_.blocks[block], operation, i));
}

std::string GraphBuilder::next_label(std::string_view operation) {
  return fmt::format("{}.{}.{}", graph_.blocks.back(), next_label_++, operation);
}

std::vector<ValueId> GraphBuilder::apply(std::string_view operation, std::vector<ValueId> inputs,
                                         Attributes attributes) {
  check_inputs(operation, inputs);
  const int block = static_cast<int>(graph_.blocks.size()) - 1;
  try {
    return graph_.apply(operation, inputs, std::move(attributes), block, Pass::forward,
                        next_label(operation));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(describe(operation, inputs) + ": " + error.what());
  }
}

ValueId GraphBuilder::apply_one(std::string_view operation, std::vector<ValueId> inputs,
                                Attributes attributes) {
  return apply(operation, std::move(inputs), std::move(attributes)).front();
}

void GraphBuilder::add_dropout(double p, std::vector<ValueId>& inputs, Attributes& attributes) {
  if (!(p >= 0 && p < 1))
    throw InvalidArgument(fmt::format(
        "block '{}': dropout of {:f}; expected a probability from 0 up to, not including, 1",
        graph_.blocks[block_of("dropout")], p));
  if (p == 0) return;
  inputs.push_back(inputs_.rng);
  attributes.set("p", p);
  attributes.set("key", next_key_++);
  attributes.set("sequence", static_cast<double>(sequence_));
}

ValueId GraphBuilder::embedding(ValueId table, ValueId positions) {
  std::vector<ValueId> inputs{inputs_.tokens, table};
  if (positions != kNoValue) inputs.push_back(positions);
  return apply_one(
      "embedding", std::move(inputs),
      {{"sequence", static_cast<double>(sequence_)}, {"dtype", static_cast<double>(dtype_)}});
}

ValueId GraphBuilder::dropout(ValueId x, double p) {
  if (p == 0) return x;
  std::vector<ValueId> inputs{x};
  Attributes attributes;
  add_dropout(p, inputs, attributes);
  return apply_one("dropout", std::move(inputs), std::move(attributes));
}

ValueId GraphBuilder::norm(ValueId x, Affine affine, double epsilon, bool rms) {
  std::vector<ValueId> inputs{x, affine.weight};
  if (affine.bias != kNoValue) inputs.push_back(affine.bias);
  return apply_one("norm", std::move(inputs),
                   {{"eps", epsilon}, {"rms", rms ? 1.0 : 0.0}, {"bias", affine.bias != kNoValue}});
}

GraphBuilder::Residual GraphBuilder::residual_norm(ValueId x, ValueId delta, Affine affine,
                                                   double epsilon, bool rms, double p) {
  std::vector<ValueId> inputs{x, delta, affine.weight};
  if (affine.bias != kNoValue) inputs.push_back(affine.bias);
  Attributes attributes{
      {"eps", epsilon}, {"rms", rms ? 1.0 : 0.0}, {"bias", affine.bias != kNoValue}};
  add_dropout(p, inputs, attributes);
  const auto outputs = apply("residual_norm", std::move(inputs), std::move(attributes));
  return {outputs[0], outputs[1]};
}

ValueId GraphBuilder::residual_add(ValueId x, ValueId delta, double p) {
  std::vector<ValueId> inputs{x, delta};
  Attributes attributes;
  add_dropout(p, inputs, attributes);
  return apply_one("residual_add", std::move(inputs), std::move(attributes));
}

ValueId GraphBuilder::linear(ValueId x, Affine affine, bool transposed) {
  std::vector<ValueId> inputs{x, affine.weight};
  if (affine.bias != kNoValue) inputs.push_back(affine.bias);
  return apply_one("linear", std::move(inputs), {{"transposed", transposed ? 1.0 : 0.0}});
}

Heads GraphBuilder::split_heads(ValueId qkv, std::int64_t heads, std::int64_t kv_heads,
                                std::int64_t head_size) {
  check_inputs("split_heads", {qkv});
  const TensorType packed = graph_.type(qkv);
  const std::int64_t asked = (heads + 2 * kv_heads) * head_size;
  if (heads <= 0 || kv_heads <= 0 || head_size <= 0 || asked != packed.shape.cols())
    throw InvalidArgument(
        fmt::format("{}: {} query and 2 x {} key and value heads of size {} need {} columns",
                    describe("split_heads", {qkv}), heads, kv_heads, head_size, asked));
  const std::int64_t rows = packed.shape.rows(), element = size_of(packed.dtype);
  const auto view = [&](std::int64_t first_head, std::int64_t count, const char* suffix) {
    return graph_.add_view(
        qkv, first_head * head_size * element,
        TensorType(packed.dtype, Shape{rows, count, head_size}, packed.row_stride),
        graph_.values[qkv].name + suffix);
  };
  return {view(0, heads, ".q"), view(heads, kv_heads, ".k"),
          view(heads + kv_heads, kv_heads, ".v")};
}

ValueId GraphBuilder::rope_table(Attributes attributes) {
  attributes.set("sequence", static_cast<double>(sequence_));
  return apply_one("rope_table", {}, std::move(attributes));
}

ValueId GraphBuilder::rope_in_place(ValueId x, ValueId table) {
  const std::vector<ValueId> inputs{x, table};
  check_inputs("rope", inputs);
  const ValueId rotated = graph_.next_version(x);
  try {
    graph_.apply_into(
        "rope", inputs, {rotated}, {{"sequence", static_cast<double>(sequence_)}, {"inverse", 0}},
        static_cast<int>(graph_.blocks.size()) - 1, Pass::forward, next_label("rope"));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(describe("rope", inputs) + ": " + error.what());
  }
  return rotated;
}

ValueId GraphBuilder::attention(Heads heads, double scale, double p) {
  std::vector<ValueId> inputs{heads.q, heads.k, heads.v};
  Attributes attributes{{"scale", scale}, {"sequence", static_cast<double>(sequence_)}};
  add_dropout(p, inputs, attributes);
  const ValueId out = apply_one("attention", std::move(inputs), std::move(attributes));
  const TensorType type = graph_.type(out);
  return graph_.add_view(out, 0,
                         TensorType(type.dtype, Shape{type.shape.rows(), type.shape.cols()}),
                         graph_.values[out].name + ".rows");
}

ValueId GraphBuilder::gelu(ValueId x, bool tanh) {
  return apply_one("gelu", {x}, {{"tanh", tanh ? 1.0 : 0.0}});
}

ValueId GraphBuilder::swiglu(ValueId gate_up) { return apply_one("swiglu", {gate_up}, {}); }

ValueId GraphBuilder::scale() {
  if (scale_ == kNoValue) {
    const auto control = [&](const char* name, TensorType type) {
      const ValueId id = input(name, type);
      graph_.values[id].role = Role::control;
      graph_.values[id].distribution = {};
      return id;
    };
    const ValueId state = control(
        kStepState, {DType::u8, Shape{static_cast<std::int64_t>(sizeof(kernels::StepState))}});
    const ValueId targets = control(kStepTargets, {DType::i64, Shape{1}});
    scale_ = apply_one("gradient_scale", {state, targets}, {});
  }
  return scale_;
}

ValueId GraphBuilder::head_loss(ValueId x, ValueId weight, std::int64_t vocabulary) {
  const ValueId factor = scale();
  return apply_one("head_loss", {x, weight, inputs_.targets, factor},
                   {{"vocabulary", static_cast<double>(vocabulary)}});
}

ValueId GraphBuilder::head_loss_eval(ValueId x, ValueId weight, std::int64_t vocabulary) {
  const ValueId factor = scale();
  return apply_one("head_loss_eval", {x, weight, inputs_.targets, factor},
                   {{"vocabulary", static_cast<double>(vocabulary)}});
}

ValueId GraphBuilder::select_rows(ValueId x, ValueId index) {
  return apply_one("select_rows", {x, index}, {});
}

Graph GraphBuilder::finish() {
  check_unfinished();
  is_finished_ = true;
  for (ParameterUnit& unit : graph_.units) unit.seal();
  return std::move(graph_);
}

}  // namespace strata::runtime
