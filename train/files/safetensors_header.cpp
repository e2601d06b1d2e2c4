#include "train/files/safetensors_header.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "core/error.h"
#include "core/json.h"
#include "core/json_writer.h"

namespace strata::train {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::int64_t kLengthBytes = 8;
/// The reference implementation's limit; a file that claims a larger header is damaged.
constexpr std::int64_t kHeaderLimitBytes = 100'000'000;
constexpr std::int64_t kDataAlignmentBytes = 4096;

struct StoredType {
  std::string_view name;
  std::int64_t bits;
  std::optional<DType> dtype;
};

constexpr std::array<StoredType, 16> kTypes{{{"F32", 32, DType::f32},
                                             {"BF16", 16, DType::bf16},
                                             {"F16", 16, DType::f16},
                                             {"F64", 64, DType::f64},
                                             {"I32", 32, DType::i32},
                                             {"I64", 64, DType::i64},
                                             {"U8", 8, DType::u8},
                                             {"I8", 8, {}},
                                             {"BOOL", 8, {}},
                                             {"I16", 16, DType::i16},
                                             {"U16", 16, {}},
                                             {"U32", 32, {}},
                                             {"U64", 64, {}},
                                             {"C64", 64, {}},
                                             {"F8_E4M3", 8, {}},
                                             {"F8_E5M2", 8, {}}}};

const StoredType* find_type(std::string_view name) {
  const auto* it = std::find_if(kTypes.begin(), kTypes.end(),
                                [&](const StoredType& type) { return type.name == name; });
  return it == kTypes.end() ? nullptr : it;
}

std::string list_text(std::span<const std::int64_t> values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

/// Reads the length field and checks it against the file's size.
std::int64_t header_length(std::span<const std::byte> beginning, std::int64_t file_size_bytes,
                           const std::string& file) {
  if (file_size_bytes < kLengthBytes || static_cast<std::int64_t>(beginning.size()) < kLengthBytes)
    throw DataError(fmt::format(
        "{}: not a safetensors file: it has {} bytes, the header's length alone takes 8", file,
        file_size_bytes));
  constexpr std::string_view kPointer = "version ";  // as git keeps in place of a large file
  if (std::memcmp(beginning.data(), kPointer.data(), kPointer.size()) == 0)
    throw DataError(file +
                    ": a pointer of git-lfs, not the weights themselves; run `git lfs pull` in the "
                    "folder it comes from, or download the file");
  std::uint64_t length = 0;
  std::memcpy(&length, beginning.data(), sizeof length);
  const auto limit =
      static_cast<std::uint64_t>(std::min(kHeaderLimitBytes, file_size_bytes - kLengthBytes));
  if (length > limit)
    throw DataError(
        fmt::format("{}: the header claims {} bytes, expected at most {} (the file has {} bytes): "
                    "not a safetensors file, or truncated",
                    file, length, limit, file_size_bytes));
  return static_cast<std::int64_t>(length);
}

std::vector<std::int64_t> integers_of(const JsonValue& list) {
  std::vector<std::int64_t> values;
  for (const JsonValue& value : list.elements()) values.push_back(value.as_integer());
  return values;
}

StoredTensor parse_entry(const std::string& name, const JsonValue& entry, std::int64_t data_begin,
                         std::int64_t data_size) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.file = entry.file();
  tensor.stored_type = entry.at("dtype").as_string();
  const StoredType* type = find_type(tensor.stored_type);
  if (type != nullptr) tensor.dtype = type->dtype;

  tensor.shape = integers_of(entry.at("shape"));
  const auto elements = checked_elements(tensor.shape);
  if (!elements) entry.fail("impossible shape " + tensor.shape_text());

  const std::vector<std::int64_t> range = integers_of(entry.at("data_offsets"));
  const bool increasing = range.size() == 2 && range[0] >= 0 && range[0] <= range[1];
  if (!increasing || range[1] > data_size)
    entry.fail(fmt::format(
        "data_offsets {}, expected two increasing numbers up to {}, the bytes that follow the "
        "header{}",
        list_text(range), data_size,
        increasing ? ": the file is cut short, copy or download it again" : ""));
  tensor.offset_bytes = data_begin + range[0];
  tensor.size_bytes = range[1] - range[0];
  // An unknown type may have elements of any size.
  if (type != nullptr &&
      (*elements > INT64_MAX / type->bits || tensor.size_bytes != *elements * type->bits / 8))
    entry.fail(fmt::format("data_offsets cover {} bytes, expected {} times shape {}",
                           tensor.size_bytes, tensor.stored_type, tensor.shape_text()));
  return tensor;
}

/// Throws unless `tensors`, sorted by offset, cover the data from end to end.
void check_cover(std::span<const StoredTensor> tensors, std::int64_t data_begin,
                 std::int64_t file_size_bytes, const std::string& file) {
  std::int64_t expected = data_begin;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.offset_bytes != expected)
      throw DataError(fmt::format(
          "{}: tensor '{}' begins at byte {}, expected {}{}", file, tensor.name,
          tensor.offset_bytes, expected,
          tensor.offset_bytes < expected ? ": it overlaps the one before" : ": a hole"));
    expected += tensor.size_bytes;
  }
  if (expected != file_size_bytes)
    throw DataError(fmt::format("{}: the tensors end at byte {}, the file at {}", file, expected,
                                file_size_bytes));
}

std::vector<StoredTensor> parse_json_header(std::string_view json, std::int64_t file_size_bytes,
                                            const std::string& file) {
  JsonOptions options;
  options.size_limit_bytes = kHeaderLimitBytes;
  const JsonValue header = parse_json(json, file, options);
  const std::int64_t data_begin = kLengthBytes + static_cast<std::int64_t>(json.size());
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : header.members()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.members()) (void)value.as_string();
    } else {
      tensors.push_back(parse_entry(name, entry, data_begin, file_size_bytes - data_begin));
    }
  }
  // Empty tensors come first at equal offsets; otherwise a full one would seem to overlap them.
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.offset_bytes, a.size_bytes, a.name) <
           std::tie(b.offset_bytes, b.size_bytes, b.name);
  });
  check_cover(tensors, data_begin, file_size_bytes, file);
  return tensors;
}

/// Names the part of a tensor in [begin, end): "tensor 'x' elements 10 to 20".
std::string part_text(const StoredTensor& tensor, std::int64_t begin, std::int64_t end) {
  const std::string name = "tensor '" + tensor.name + "'";
  if (!tensor.dtype) return name;
  const std::int64_t size = size_of(*tensor.dtype);
  const std::int64_t first = std::max<std::int64_t>(begin - tensor.offset_bytes, 0) / size;
  const std::int64_t last = std::min(end - tensor.offset_bytes, tensor.size_bytes);
  return fmt::format("{} elements {} to {}", name, first, (last + size - 1) / size);
}

}  // namespace

std::string describe_bytes(std::span<const StoredTensor> tensors, std::int64_t header_bytes,
                           std::int64_t begin, std::int64_t end) {
  const StoredTensor* first = nullptr;
  const StoredTensor* last = nullptr;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.size_bytes == 0 || tensor.offset_bytes >= end ||
        tensor.offset_bytes + tensor.size_bytes <= begin)
      continue;
    if (first == nullptr) first = &tensor;
    last = &tensor;
  }
  std::string text = begin < header_bytes ? "the header" : "";
  if (first == nullptr) return text;
  if (!text.empty()) text += " and ";
  text += part_text(*first, begin, end);
  if (last != first) text += " up to " + part_text(*last, begin, end);
  return text;
}

std::optional<std::int64_t> checked_elements(std::span<const std::int64_t> shape) {
  // An extent of 0 makes the tensor empty, whatever the others are.
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) empty = true;
    if (extent > 0 && __builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return empty ? 0 : product;
}

std::int64_t StoredTensor::elements() const { return checked_elements(shape).value_or(0); }
std::string StoredTensor::shape_text() const { return list_text(shape); }

std::string_view safetensors_type(DType dtype) {
  for (const StoredType& type : kTypes)
    if (type.dtype == dtype) return type.name;
  STRATA_CHECK(false, "no safetensors type for", name_of(dtype));
}

std::vector<StoredTensor> read_safetensors_header(const File& file) {
  const std::int64_t size = file.size_bytes();
  std::array<std::byte, kLengthBytes> prefix{};
  if (size >= kLengthBytes) file.read(0, prefix, "the header's length");
  std::string json(static_cast<std::size_t>(header_length(prefix, size, file.path())), '\0');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(json)), "the header");
  return parse_json_header(json, size, file.path());
}

std::vector<StoredTensor> parse_safetensors_header(std::span<const std::byte> beginning,
                                                   std::int64_t file_size_bytes,
                                                   const std::string& file) {
  const auto length = static_cast<std::size_t>(header_length(beginning, file_size_bytes, file));
  if (beginning.size() - kLengthBytes < length)
    throw DataError(fmt::format("{}: the header has {} bytes, found only {}", file, length,
                                beginning.size() - kLengthBytes));
  const auto json = beginning.subspan(kLengthBytes, length);
  return parse_json_header({reinterpret_cast<const char*>(json.data()), json.size()},
                           file_size_bytes, file);
}

std::string make_safetensors_header(std::span<const TensorSpec> tensors, const Metadata& metadata) {
  JsonWriter json(0);
  json.begin_object().key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) json.member(key, value);
  json.end_object();
  std::int64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    const auto elements = checked_elements(tensor.shape);
    STRATA_CHECK(elements.has_value(), tensor.name);
    json.key(tensor.name).begin_object().member("dtype", safetensors_type(tensor.dtype));
    json.key("shape").begin_array();
    for (const std::int64_t extent : tensor.shape) json.value(extent);
    json.end_array().key("data_offsets").begin_array().value(offset);
    offset += *elements * size_of(tensor.dtype);
    json.value(offset).end_array().end_object();
  }
  std::string text = json.end_object().finish();
  const auto end = kLengthBytes + static_cast<std::int64_t>(text.size());
  const auto padded = (end + kDataAlignmentBytes - 1) / kDataAlignmentBytes * kDataAlignmentBytes;
  text.append(static_cast<std::size_t>(padded - end), ' ');
  const std::uint64_t length = text.size();
  std::string out(kLengthBytes, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text;
}

}  // namespace strata::train
