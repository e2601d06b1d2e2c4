#include "runtime/graph/graph.h"

#include <fmt/core.h>
#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "runtime/graph/state_names.h"

namespace strata::runtime {

std::string_view name_of(Role role) {
  constexpr std::string_view kNames[] = {"activation", "parameter", "gradient", "optimizer",
                                         "input",      "control",   "snapshot"};
  return kNames[static_cast<int>(role)];
}

std::string_view name_of(Pass pass) {
  constexpr std::string_view kNames[] = {"forward", "backward", "update"};
  return kNames[static_cast<int>(pass)];
}

std::string describe(const Value& value) {
  return value.version == 0 ? value.name : fmt::format("{} v{}", value.name, value.version);
}

int Graph::add_block(std::string name) {
  if (std::find(blocks.begin(), blocks.end(), name) != blocks.end())
    throw InvalidArgument("the model has two blocks named '" + name +
                          "'; give each block a name of its own");
  blocks.push_back(std::move(name));
  return static_cast<int>(blocks.size()) - 1;
}

int Graph::add_unit(ParameterUnit unit, DType dtype) {
  for (const ParameterUnit& known : units)
    if (known.name == unit.name)
      throw InvalidArgument("the model has two parameter units named '" + unit.name +
                            "', of the blocks '" + blocks[known.block] + "' and '" +
                            blocks[unit.block] + "'; give each unit a name of its own");
  Value root;
  root.name = parameter_name(unit.name);
  root.role = Role::parameter;
  root.storage = Storage::persistent;
  root.type = kernels::TensorType(dtype, kernels::Shape{unit.elements});
  unit_values.push_back(add_value(std::move(root)));
  unit_gradients.push_back(kNoValue);
  unit.number = static_cast<int>(units.size());
  units.push_back(std::move(unit));
  return static_cast<int>(units.size()) - 1;
}

ValueId Graph::add_value(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_view(ValueId of, std::int64_t offset_bytes, kernels::TensorType type,
                        std::string name) {
  Value view = values[of];
  view.root = root_of(of);
  view.offset_bytes += offset_bytes;
  view.type = type;
  view.name = std::move(name);
  STRATA_CHECK(view.offset_bytes >= 0 && view.offset_bytes + type.span_bytes() <= bytes(view.root),
               "view", view.name, "leaves", values[view.root].name);
  return add_value(std::move(view));
}

ValueId Graph::next_version(ValueId of) { return at_version(of, values[of].version + 1); }

ValueId Graph::at_version(ValueId of, std::int32_t version) {
  const ValueId id = add_view(of, 0, type(of), values[of].name);
  values[id].version = version;
  return id;
}

ValueId Graph::find_persistent(const std::string& name) {
  const auto is_persistent = [&](ValueId id) {
    return values[id].root == kNoValue && values[id].storage == Storage::persistent;
  };
  for (; indexed_ < values.size(); ++indexed_)
    if (const auto id = static_cast<ValueId>(indexed_); is_persistent(id)) {
      const auto [known, fresh] = persistent_.try_emplace(values[id].name, id);
      if (!fresh && !is_persistent(known->second)) known->second = id;
    }
  const auto found = persistent_.find(name);
  // A root that a pass made transient or renamed is still in the index.
  const bool is_there = found != persistent_.end() && is_persistent(found->second) &&
                        values[found->second].name == name;
  return is_there ? found->second : kNoValue;
}

void Graph::set_home(ValueId root, Tier tier) {
  STRATA_CHECK(values[root].root == kNoValue, values[root].name, "is a view");
  for (ValueId id = 0; id < static_cast<ValueId>(values.size()); ++id)
    if (root_of(id) == root) values[id].tier = tier;
}

void Graph::make_persistent(ValueId root, std::string name) {
  STRATA_CHECK(values[root].root == kNoValue && values[root].storage == Storage::transient,
               values[root].name, "is no transient root");
  persistent_.insert_or_assign(name, root);
  values[root].name = std::move(name);
  for (ValueId id = 0; id < static_cast<ValueId>(values.size()); ++id)
    if (root_of(id) == root) {
      values[id].storage = Storage::persistent;
      ++values[id].version;
    }
}

std::vector<ValueId> Graph::apply(std::string_view operation, std::vector<ValueId> inputs,
                                  kernels::Attributes attributes, int block, Pass pass,
                                  std::string label) {
  const kernels::Operation& op = kernels::find_operation(operation);
  const kernels::Types inferred = op.infer(types(inputs), attributes);
  std::vector<ValueId> outputs;
  for (std::size_t k = 0; k < inferred.size(); ++k) {
    Value value;
    value.name = k == 0 ? label : fmt::format("{}.{}", label, k);
    value.type = inferred[k];
    value.role = pass == Pass::backward ? Role::gradient : Role::activation;
    outputs.push_back(add_value(std::move(value)));
  }
  nodes.push_back({&op, std::move(attributes), std::move(inputs), outputs, block, pass, kNoValue,
                   std::nullopt, Queue::compute, TransferPurpose::none, std::move(label)});
  return outputs;
}

void Graph::apply_into(std::string_view operation, std::vector<ValueId> inputs,
                       std::vector<ValueId> outputs, kernels::Attributes attributes, int block,
                       Pass pass, std::string label) {
  const kernels::Operation& op = kernels::find_operation(operation);
  const kernels::Types inferred = op.infer(types(inputs), attributes);
  STRATA_CHECK(inferred.size() == outputs.size(), label, "outputs", outputs.size());
  for (std::size_t k = 0; k < inferred.size(); ++k) {
    const kernels::TensorType& found = type(outputs[k]);
    STRATA_CHECK(
        found.dtype == inferred[k].dtype && found.shape.elements() == inferred[k].shape.elements(),
        label, "output", k, found.to_string(), "expected", inferred[k].to_string());
  }
  nodes.push_back({&op, std::move(attributes), std::move(inputs), std::move(outputs), block, pass,
                   kNoValue, std::nullopt, Queue::compute, TransferPurpose::none,
                   std::move(label)});
}

kernels::Types Graph::types(const std::vector<ValueId>& ids) const {
  kernels::Types result;
  for (ValueId id : ids) result.push_back(values[id].type);
  return result;
}

std::string Graph::to_string() const {
  std::string text;
  const auto list = [&](const std::vector<ValueId>& ids) {
    std::string names;
    for (ValueId id : ids) {
      const Value& value = values[id];
      names += (names.empty() ? "" : ", ") + describe(value) + ":" + value.type.to_string() +
               runtime::to_string(value.distribution);
    }
    return names;
  };
  int block = -1;
  for (const Node& node : nodes) {
    if (node.block != block) {
      block = node.block;
      text += "block " + blocks[block] + "\n";
    }
    text += "  " + std::string(name_of(node.pass)) + "  " + list(node.outputs) + " = " +
            std::string(node.operation->name) + "(" + list(node.inputs) + ") {" +
            node.attributes.to_string() + "}\n";
  }
  return text;
}

ByteRange range_of(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  return {value.offset_bytes, value.offset_bytes + value.type.span_bytes()};
}

bool overlap(const Graph& graph, ValueId a, ValueId b) {
  if (graph.root_of(a) != graph.root_of(b)) return false;
  const auto row_bytes = [&](ValueId id) {
    return graph.type(id).row_stride * size_of(graph.type(id).dtype);
  };
  const auto columns = [&](ValueId id) {
    const Value& value = graph.values[id];
    const std::int64_t begin = value.offset_bytes % row_bytes(id);
    return ByteRange{begin, begin + value.type.shape.cols() * size_of(value.type.dtype)};
  };
  if (row_bytes(a) > 0 && row_bytes(a) == row_bytes(b)) {
    const ByteRange of_a = columns(a), of_b = columns(b);
    if (of_a.end <= row_bytes(a) && of_b.end <= row_bytes(a) && !of_a.overlaps(of_b)) return false;
  }
  return range_of(graph, a).overlaps(range_of(graph, b));
}

}  // namespace strata::runtime
