#include "train/models/hf_rope.h"

#include <algorithm>
#include <cmath>

namespace strata::train {
namespace {

constexpr double kLargestTheta = 1e15;
constexpr double kLargestFactor = 1e6;
/// Computes transformers' get_mscale: how much longer contexts sharpen the attention.
double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

void read_yarn(const HfReader& rope, RopeScaling& scaling) {
  scaling.beta_fast = rope.number("beta_fast", 32, 1e-6, 1e6);
  scaling.beta_slow = rope.number("beta_slow", 1, 1e-6, 1e6);
  scaling.attention_factor = rope.number("attention_factor", 0, 0, 1e3);
  rope.require_flag("truncate", true, "only rounded correction ranges are built");
  const double mscale = rope.number("mscale", 0, 0, 1e3);
  const double mscale_all = rope.number("mscale_all_dim", 0, 0, 1e3);
  if (scaling.attention_factor == 0 && mscale != 0 && mscale_all != 0) {
    scaling.attention_factor =
        yarn_scale(scaling.factor, mscale) / yarn_scale(scaling.factor, mscale_all);
  }
}

void read_llama3(const HfReader& rope, RopeScaling& scaling) {
  scaling.low_frequency_factor = rope.number("low_freq_factor", 1, 1e-6, 1e6);
  scaling.high_frequency_factor = rope.number("high_freq_factor", 4, 1e-6, 1e6);
  if (scaling.high_frequency_factor <= scaling.low_frequency_factor) {
    rope.fail("high_freq_factor", "found a value that is not larger than low_freq_factor");
  }
}

/// The names of RopeScaling::Type, in its order.
constexpr std::string_view kTypeNames[] = {"default", "linear", "llama3", "yarn"};

RopeScaling::Type type_of(const HfReader& rope) {
  const std::string key = rope.find("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text(key, "default");
  const auto name = std::ranges::find(kTypeNames, type);
  if (name == std::end(kTypeNames))
    rope.fail(key, "found '" + type + "', expected default, linear, llama3 or yarn");
  return static_cast<RopeScaling::Type>(name - kTypeNames);
}

void read_scaling(const HfReader& rope, const HfReader& top, ModelConfig& config) {
  RopeScaling& scaling = config.rope_scaling;
  scaling.type = type_of(rope);
  if (scaling.type == RopeScaling::Type::none) return;
  if (!rope.find("factor")) rope.fail("factor", "missing, expected a number of at least 1");
  scaling.factor = rope.number("factor", 1, 1, kLargestFactor);
  if (scaling.type == RopeScaling::Type::linear) return;
  constexpr std::string_view original = "original_max_position_embeddings";
  // The length is beside the rope settings, else inside, else the model's own, as in transformers.
  scaling.original_context =
      top.size(original, kLargestContext, rope.size(original, kLargestContext, config.context));
  if (scaling.type == RopeScaling::Type::llama3) read_llama3(rope, scaling);
  if (scaling.type == RopeScaling::Type::yarn) read_yarn(rope, scaling);
}

}  // namespace

void read_rope(const HfReader& reader, ModelConfig& config) {
  config.rope_theta = reader.number("rope_theta", 10000, 1e-3, kLargestTheta);
  if (reader.number("partial_rotary_factor", 1, 0, 1) != 1) {
    reader.fail("partial_rotary_factor", "found a part of the head, expected 1");
  }
  // rope_scaling wins if both are there, as in transformers.
  std::optional<JsonValue> rope = reader.find("rope_scaling");
  if (!rope) rope = reader.find("rope_parameters");
  if (!rope) return;
  const HfReader inside(*rope);
  for (const auto& [name, value] : rope->members())
    if (value.is(JsonKind::object))
      inside.fail(name, "found settings of one kind of layers, expected the same for all");
  config.rope_theta = inside.number("rope_theta", config.rope_theta, 1e-3, kLargestTheta);
  if (inside.number("partial_rotary_factor", 1, 0, 1) != 1) {
    inside.fail("partial_rotary_factor", "found a part of the head, expected 1");
  }
  read_scaling(inside, reader, config);
}

void write_rope(const ModelConfig& config, JsonWriter& out) {
  const RopeScaling& scaling = config.rope_scaling;
  out.member("rope_theta", config.rope_theta).key("rope_scaling");
  if (scaling.type == RopeScaling::Type::none) {
    out.null();
    return;
  }
  out.begin_object()
      .member("rope_type", kTypeNames[static_cast<int>(scaling.type)])
      .member("factor", scaling.factor);
  if (scaling.type != RopeScaling::Type::linear) {
    out.member("original_max_position_embeddings", scaling.original_context);
  }
  if (scaling.type == RopeScaling::Type::llama3) {
    out.member("low_freq_factor", scaling.low_frequency_factor);
    out.member("high_freq_factor", scaling.high_frequency_factor);
  }
  if (scaling.type == RopeScaling::Type::yarn) {
    out.member("beta_fast", scaling.beta_fast).member("beta_slow", scaling.beta_slow);
    if (scaling.attention_factor != 0) out.member("attention_factor", scaling.attention_factor);
  }
  out.end_object();
}

bool same_rope(const ModelConfig& a, const ModelConfig& b) {
  const RopeScaling& x = a.rope_scaling;
  const RopeScaling& y = b.rope_scaling;
  return a.rope_theta == b.rope_theta && x.type == y.type && x.factor == y.factor &&
         x.low_frequency_factor == y.low_frequency_factor &&
         x.high_frequency_factor == y.high_frequency_factor &&
         x.original_context == y.original_context && x.beta_fast == y.beta_fast &&
         x.beta_slow == y.beta_slow && x.attention_factor == y.attention_factor;
}

}  // namespace strata::train
