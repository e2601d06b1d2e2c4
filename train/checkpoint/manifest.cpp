#include "train/checkpoint/manifest.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_set>

#include "core/error.h"
#include "core/file_system.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "core/round_up.h"
#include "train/checkpoint/exact_members.h"

namespace strata::train {
namespace {

constexpr std::int64_t kManifestVersion = 1;
constexpr std::int64_t kMaxBlockBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 50;
constexpr std::string_view kSealBegin = ",\n  \"manifest_hash\": \"";
constexpr std::string_view kSealEnd = "\"\n}\n";
constexpr std::size_t kSealBytes = kSealBegin.size() + kHashDigits + kSealEnd.size();

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::optional<Hash128> parse_hash(std::string_view text) {
  if (text.size() != kHashDigits) return std::nullopt;
  Hash128 hash;
  for (const char c : text) {
    const bool letter = c >= 'a' && c <= 'f';
    if (!letter && (c < '0' || c > '9')) return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(letter ? c - 'a' + 10 : c - '0');
    hash.high = hash.high << 4 | hash.low >> 60;
    hash.low = hash.low << 4 | digit;
  }
  return hash;
}

Hash128 hash_of(const JsonValue& value) {
  const auto hash = parse_hash(value.as_string());
  if (!hash) value.fail("expected 32 hexadecimal digits, found " + value.describe());
  return *hash;
}

/// Returns the text without its last line, which must be the hash of the rest.
std::string_view checked_body(std::string_view text, const std::string& file) {
  const auto refuse = [&file](const std::string& what) {
    throw DataError(file + ": " + what +
                    "; the manifest is truncated or was changed, so nothing says what the "
                    "checkpoint held: resume from another one");
  };
  if (static_cast<std::int64_t>(text.size()) > kManifestLimitBytes)
    refuse(
        fmt::format("has {} bytes, more than the limit of {}", text.size(), kManifestLimitBytes));
  if (text.size() < kSealBytes) refuse(fmt::format("has only {} bytes", text.size()));
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  const std::string_view seal = text.substr(body.size());
  if (!seal.starts_with(kSealBegin) || !seal.ends_with(kSealEnd))
    refuse("does not end with its hash");
  const std::string found = hash_128(bytes(body)).hex();
  const std::string_view expected = seal.substr(kSealBegin.size(), kHashDigits);
  if (found != expected)
    refuse("its text has hash " + found + ", but it says " + std::string(expected));
  return body;
}

std::int64_t integer_between(const JsonValue& value, std::int64_t least, std::int64_t most) {
  const std::int64_t number = value.as_integer();
  if (number < least || number > most)
    value.fail(fmt::format("expected {} to {}, found {}", least, most, number));
  return number;
}

/// Reads the name of one file; `names` holds those of earlier files.
std::string name_of_file(const JsonValue& value, std::unordered_set<std::string>& names) {
  std::string name = value.as_string();
  if (!is_whole_file_name(name))
    value.fail("expected the name of a file in the same folder, or one folder below it, found " +
               value.describe());
  if (!names.insert(name).second) value.fail("a second file of the name " + name);
  return name;
}

Manifest::BlockFile parse_block_file(const JsonValue& entry, std::int64_t block_bytes,
                                     std::unordered_set<std::string>& names) {
  const auto values = exact_members(entry, {"name", "bytes", "block_hashes"});
  Manifest::BlockFile file;
  file.name = name_of_file(values[0], names);
  if (!is_plain_name(file.name) || !file.name.ends_with(".safetensors"))
    values[0].fail("expected a name without folder that ends with .safetensors, found " +
                   values[0].describe());
  file.size_bytes = integer_between(values[1], 1, kMaxFileBytes);
  const std::string digits = values[2].as_string();
  const std::int64_t blocks = divide_up(file.size_bytes, block_bytes);
  if (static_cast<std::int64_t>(digits.size() / kHashDigits) != blocks ||
      digits.size() % kHashDigits != 0)
    values[2].fail(fmt::format("expected {} hashes of 32 digits for {} bytes, found {} digits",
                               blocks, file.size_bytes, digits.size()));
  for (std::size_t i = 0; i < digits.size(); i += kHashDigits) {
    const auto hash = parse_hash(std::string_view(digits).substr(i, kHashDigits));
    if (!hash) values[2].fail("expected hexadecimal digits only");
    file.blocks.push_back(*hash);
  }
  return file;
}

}  // namespace

const std::string* Manifest::find_fact(std::string_view key) const {
  for (const auto& [name, value] : facts)
    if (name == key) return &value;
  return nullptr;
}

const Manifest::HashedFile* Manifest::find_whole_file(std::string_view name) const {
  for (const HashedFile& file : whole_files)
    if (file.name == name) return &file;
  return nullptr;
}

std::int64_t Manifest::total_bytes() const {
  std::int64_t total = 0;
  for (const BlockFile& file : block_files) total += file.size_bytes;
  for (const HashedFile& file : whole_files) total += file.size_bytes;
  return total;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '/' && c != '\\'; });
}

bool is_whole_file_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_plain_name(name);
  return is_plain_name(name.substr(0, slash)) && is_plain_name(name.substr(slash + 1));
}

std::string seal_manifest(std::string_view body) {
  return std::string(body) + std::string(kSealBegin) + hash_128(bytes(body)).hex() +
         std::string(kSealEnd);
}

Manifest make_manifest(const CheckpointLayout& layout, std::int64_t step, Facts facts,
                       std::span<const WholeFile> whole_files, std::span<const BlockHash> hashes) {
  Manifest manifest{.step = step, .facts = std::move(facts), .block_bytes = layout.block_bytes()};
  std::unordered_set<std::string> names{kManifestName};
  for (const auto& file : layout.files()) {
    names.insert(file.name);
    manifest.block_files.push_back({file.name, file.size_bytes, {}});
  }
  const std::string which = fmt::format("checkpoint of step {}: ", step);
  std::vector<bool> written(static_cast<std::size_t>(layout.blocks()));
  std::vector<Hash128> ordered(written.size());
  const auto place = [&](std::int64_t number) {
    const FilePiece block = layout.block(number);
    return fmt::format("{} bytes {} to {} ({})", layout.files()[block.file].name, block.begin,
                       block.end, layout.describe(block));
  };
  for (const BlockHash& hash : hashes) {
    const auto number = static_cast<std::size_t>(hash.block);
    if (hash.block < 0 || hash.block >= layout.blocks())
      throw InternalError(fmt::format("{}it has no block {}", which, hash.block));
    if (written[number]) throw InternalError(which + "two ranks wrote " + place(hash.block));
    written[number] = true;
    ordered[number] = hash.hash;
  }
  for (std::int64_t number = 0; number < layout.blocks(); ++number) {
    if (!written[static_cast<std::size_t>(number)])
      throw InternalError(which + "no rank wrote " + place(number));
    manifest.block_files[layout.block(number).file].blocks.push_back(
        ordered[static_cast<std::size_t>(number)]);
  }
  for (const WholeFile& file : whole_files) {
    if (!is_whole_file_name(file.name) || !names.insert(file.name).second)
      throw InternalError(which + "a file cannot have the name '" + file.name + "'");
    manifest.whole_files.push_back(
        {file.name, static_cast<std::int64_t>(file.text.size()), hash_128(bytes(file.text))});
  }
  return manifest;
}

std::string to_text(const Manifest& manifest) {
  JsonWriter json(2);
  json.begin_object().member("strata_checkpoint", kManifestVersion).member("step", manifest.step);
  json.key("facts").begin_object();
  for (const auto& [key, value] : manifest.facts) json.member(key, value);
  json.end_object().member("block_bytes", manifest.block_bytes);
  json.key("block_files").begin_array();
  for (const Manifest::BlockFile& file : manifest.block_files) {
    std::string hashes;
    hashes.reserve(file.blocks.size() * kHashDigits);
    for (const Hash128& hash : file.blocks) hashes += hash.hex();
    json.begin_object().member("name", file.name).member("bytes", file.size_bytes);
    json.member("block_hashes", hashes).end_object();
  }
  json.end_array().key("whole_files").begin_array();
  for (const Manifest::HashedFile& file : manifest.whole_files) {
    json.begin_object().member("name", file.name).member("bytes", file.size_bytes);
    json.member("hash", file.hash.hex()).end_object();
  }
  const std::string text = json.end_array().end_object().finish();
  return seal_manifest(text.substr(0, text.size() - 2));  // without "\n}"
}

Manifest parse_manifest(std::string_view text, const std::string& file) {
  const std::string whole = std::string(checked_body(text, file)) + "\n}";
  JsonOptions options;
  options.depth_limit = 8;
  options.size_limit_bytes = kManifestLimitBytes;
  const JsonValue top = parse_json(whole, file, options);
  require_version(top, "strata_checkpoint", kManifestVersion, "the checkpoint");
  const auto values = exact_members(
      top, {"strata_checkpoint", "step", "facts", "block_bytes", "block_files", "whole_files"});
  Manifest manifest;
  manifest.step = integer_between(values[1], 0, INT64_MAX);
  for (const auto& [key, value] : values[2].members())
    manifest.facts.emplace_back(key, value.as_string());
  manifest.block_bytes = integer_between(values[3], kDirectAlignmentBytes, kMaxBlockBytes);
  if (!std::has_single_bit(static_cast<std::uint64_t>(manifest.block_bytes)))
    values[3].fail("expected a power of two, found " + values[3].describe());
  std::unordered_set<std::string> names{kManifestName};
  for (const JsonValue& entry : values[4].elements())
    manifest.block_files.push_back(parse_block_file(entry, manifest.block_bytes, names));
  if (manifest.block_files.empty()) values[4].fail("expected at least one file");
  for (const JsonValue& entry : values[5].elements()) {
    const auto fields = exact_members(entry, {"name", "bytes", "hash"});
    std::string name = name_of_file(fields[0], names);
    if (name.ends_with(".safetensors")) fields[0].fail("a safetensors file belongs to block_files");
    manifest.whole_files.push_back(
        {std::move(name), integer_between(fields[1], 0, kWholeFileLimitBytes), hash_of(fields[2])});
  }
  for (const Manifest::HashedFile& whole_file : manifest.whole_files)
    if (names.contains(parent_directory(whole_file.name)))
      values[5].fail(whole_file.name + " lies in a folder that has the name of a file");
  return manifest;
}

bool is_manifest(std::string_view text) {
  for (const std::string_view key : {"\"strata_checkpoint\"", "\"block_hashes\""})
    if (text.find(key) != std::string_view::npos) return true;
  try {
    (void)parse_json(text, kManifestName, {.size_limit_bytes = kManifestLimitBytes});
    return false;
  } catch (const DataError&) {  // perhaps only the beginning is left
    return true;
  }
}

}  // namespace strata::train
