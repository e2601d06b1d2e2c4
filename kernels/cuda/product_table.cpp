#include "kernels/cuda/product_table.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

#include "core/error.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "kernels/cuda/product_workspace.h"

namespace strata::cuda {
namespace {

constexpr std::string_view kFormat = "strata product algorithms 1";
constexpr std::size_t kHexDigits = 16;  // digits per word

std::string to_hex(const ProductAlgorithm& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.words) {
    char digits[kHexDigits];
    const auto end = std::to_chars(digits, digits + kHexDigits, word, 16).ptr;
    text.append(kHexDigits - static_cast<std::size_t>(end - digits), '0').append(digits, end);
  }
  return text;
}

void write_product(JsonWriter& json, const LibraryProduct& p) {
  const auto numbers = [&](std::string_view name, std::initializer_list<std::int64_t> values) {
    json.key(name).begin_array();
    for (const std::int64_t value : values) json.value(value);
    json.end_array();
  };
  numbers("extents", {p.m, p.n, p.k});
  numbers("strides", {p.first_stride, p.second_stride, p.result_stride});
  numbers("alignments", {p.first_alignment, p.second_alignment, p.result_alignment});
  json.key("transposed").begin_array();
  json.value(p.first_transposed).value(p.second_transposed).end_array();
  json.member("operands", name_of(p.operands)).member("result", name_of(p.result));
  if (p.bias) {
    json.member("bias", name_of(*p.bias)).member("bias_alignment", p.bias_alignment);
  }
  json.member("accumulate", p.accumulate);
}

void write_choice(JsonWriter& json, const ProductChoice& choice) {
  if (choice.algorithm) {
    json.member("algorithm", to_hex(*choice.algorithm));
    json.member("workspace_bytes", choice.algorithm->workspace_bytes);
  }
  json.member("microseconds", choice.microseconds);
}

/// A JSON object, which must have no members but those that were asked for.
class Members {
 public:
  explicit Members(const JsonValue& object) : object_(object), left_(object.size()) {}

  std::optional<JsonValue> find(std::string_view name) {
    std::optional<JsonValue> value = object_.find(name);
    if (value) --left_;
    asked_ += (asked_.empty() ? "" : ", ") + std::string(name);
    return value;
  }
  JsonValue at(std::string_view name) {
    std::optional<JsonValue> value = find(name);
    return value ? *value : object_.at(name);
  }
  void require_no_more() const {
    if (left_ > 0) object_.fail("has members that are not known; known: " + asked_);
  }

 private:
  JsonValue object_;
  std::int64_t left_;
  std::string asked_;
};

std::int64_t integer(const JsonValue& value, std::int64_t least, std::int64_t most) {
  const std::int64_t found = value.as_integer();
  if (found < least || found > most)
    value.fail(fmt::format("{}, expected {} to {}", value.describe(), least, most));
  return found;
}

std::vector<JsonValue> elements(const JsonValue& array, std::size_t count) {
  std::vector<JsonValue> found = array.elements();
  if (found.size() != count)
    array.fail(fmt::format("{}, expected an array of {}", array.describe(), count));
  return found;
}

DType float_type(const JsonValue& value) {
  const std::string name = value.as_string();
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    if (name == name_of(type)) return type;
  value.fail(value.describe() + ", expected fp32, bf16 or fp16");
}

int alignment(const JsonValue& value) {
  const std::int64_t found = integer(value, 1, kMostAlignment);
  if ((found & (found - 1)) != 0) value.fail(value.describe() + ", expected a power of two");
  return static_cast<int>(found);
}

LibraryProduct read_product(Members& members) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  LibraryProduct p;
  const auto numbers = [&](std::string_view name, std::initializer_list<std::int64_t*> to) {
    const std::vector<JsonValue> values = elements(members.at(name), to.size());
    std::size_t i = 0;
    for (std::int64_t* number : to) *number = integer(values[i++], 1, kMost);
  };
  numbers("extents", {&p.m, &p.n, &p.k});
  numbers("strides", {&p.first_stride, &p.second_stride, &p.result_stride});
  const std::vector<JsonValue> alignments = elements(members.at("alignments"), 3);
  p.first_alignment = alignment(alignments[0]);
  p.second_alignment = alignment(alignments[1]);
  p.result_alignment = alignment(alignments[2]);
  const std::vector<JsonValue> transposed = elements(members.at("transposed"), 2);
  p.first_transposed = transposed[0].as_boolean();
  p.second_transposed = transposed[1].as_boolean();
  p.operands = float_type(members.at("operands"));
  p.result = float_type(members.at("result"));
  if (const auto bias = members.find("bias")) {
    p.bias = float_type(*bias);
    p.bias_alignment = alignment(members.at("bias_alignment"));
  }
  p.accumulate = members.at("accumulate").as_boolean();
  return p;
}

ProductAlgorithm algorithm_from_hex(const JsonValue& value) {
  const std::string text = value.as_string();
  ProductAlgorithm algorithm;
  bool right = text.size() == kHexDigits * algorithm.words.size();
  for (std::size_t i = 0; right && i < algorithm.words.size(); ++i) {
    const char* begin = text.data() + i * kHexDigits;
    const auto read = std::from_chars(begin, begin + kHexDigits, algorithm.words[i], 16);
    right = read.ec == std::errc() && read.ptr == begin + kHexDigits;
  }
  if (!right)
    value.fail(fmt::format("expected {} hexadecimal digits", kHexDigits * algorithm.words.size()));
  return algorithm;
}

/// The bytes of scratch that are planned for a library that runs this product.
std::int64_t scratch_of(const LibraryProduct& product) {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;  // elements, enough for the most scratch
  return library_bytes(product.m > kMany / product.n ? kMany : product.m * product.n);
}

ProductChoice read_choice(Members& members, const LibraryProduct& product) {
  ProductChoice choice;
  if (const auto hex = members.find("algorithm")) {
    choice.algorithm = algorithm_from_hex(*hex);
    choice.algorithm->workspace_bytes =
        integer(members.at("workspace_bytes"), 0, scratch_of(product));
  }
  const JsonValue time = members.at("microseconds");
  choice.microseconds = time.as_number();
  if (!(choice.microseconds >= 0) || std::isinf(choice.microseconds))
    time.fail(time.describe() + ", expected a time");
  return choice;
}

ProductChoices read_choices(const JsonValue& products) {
  ProductChoices choices;
  for (const JsonValue& entry : products.elements()) {
    Members members(entry);
    const LibraryProduct product = read_product(members);
    const ProductChoice choice = read_choice(members, product);
    members.require_no_more();
    if (!choices.emplace(product, choice).second)
      entry.fail("the product " + product.to_string() + " occurs twice");
  }
  return choices;
}

}  // namespace

std::string to_json(const ProductTable& table) {
  JsonWriter json;
  json.begin_object().member("format", kFormat).key("machines").begin_array();
  for (const auto& [machine, choices] : table) {
    json.begin_object().member("gpu", machine.gpu).member("library", machine.library);
    json.member("tf32", machine.tf32).key("products").begin_array();
    for (const auto& [product, choice] : choices) {
      json.begin_object();
      write_product(json, product);
      write_choice(json, choice);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return json.finish() + "\n";
}

ProductTable product_table_from_json(std::string_view text, const std::string& file) {
  const JsonValue document = parse_json(text, file, {});
  Members top(document);
  const JsonValue format = top.at("format");
  if (format.as_string() != kFormat)
    format.fail(format.describe() + ", expected \"" + std::string(kFormat) + "\"");
  ProductTable table;
  for (const JsonValue& entry : top.at("machines").elements()) {
    Members members(entry);
    ProductMachine machine{.gpu = members.at("gpu").as_string()};
    machine.library = integer(members.at("library"), 0, std::int64_t{1} << 40);
    machine.tf32 = members.at("tf32").as_boolean();
    ProductChoices choices = read_choices(members.at("products"));
    members.require_no_more();
    if (!table.emplace(machine, std::move(choices)).second) entry.fail("this machine occurs twice");
  }
  top.require_no_more();
  return table;
}

}  // namespace strata::cuda
