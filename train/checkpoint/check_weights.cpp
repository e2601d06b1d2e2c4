#include "train/checkpoint/check_weights.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "train/checkpoint/manifest.h"

namespace strata::train {
namespace {

constexpr std::string_view kUseAnother =
    "; use another checkpoint (`inspect verify` says which are whole), or remove manifest.json if "
    "these weights were changed on purpose";

/// Resolves links: the cache of a model hub consists of them.
std::string without_links(const std::string& path) {
  std::error_code unknown;
  const auto target = std::filesystem::weakly_canonical(path, unknown);
  return unknown ? path : target.string();
}

void check_file(FileSystem& files, const std::string& path, const Manifest::BlockFile& expected,
                std::int64_t block_bytes, std::int64_t rank, std::int64_t ranks, const Beat& beat) {
  const auto file = files.open_for_reading(without_links(path), Caching::cached);
  if (file->size_bytes() != expected.size_bytes)
    throw DataError(fmt::format("{}: has {} bytes, its manifest says {}{}", path,
                                file->size_bytes(), expected.size_bytes, kUseAnother));
  std::vector<std::byte> memory(
      static_cast<std::size_t>(std::min(block_bytes, expected.size_bytes)));
  for (std::int64_t block = rank; block < std::ssize(expected.blocks); block += ranks) {
    const std::int64_t begin = block * block_bytes;
    const std::int64_t end = std::min(begin + block_bytes, expected.size_bytes);
    const std::span<std::byte> bytes =
        std::span(memory).first(static_cast<std::size_t>(end - begin));
    file->read(begin, bytes);
    beat();
    const Hash128 wanted = expected.blocks[static_cast<std::size_t>(block)];
    if (const Hash128 found = hash_128(bytes); found != wanted)
      throw DataError(
          fmt::format("{}: is damaged: block {}, bytes {} to {}, has hash {}, expected {}{}", path,
                      block, begin, end, found.hex(), wanted.hex(), kUseAnother));
  }
}

}  // namespace

void check_weights(FileSystem& files, const std::string& directory, std::int64_t rank,
                   std::int64_t ranks, const Beat& beat) {
  const std::string path = directory + "/" + kManifestName;
  if (!is_name_taken(path)) return;
  const std::string text = read_whole_file(path, kManifestLimitBytes);
  if (!is_manifest(text)) return;
  const Manifest manifest = parse_manifest(text, path);
  for (const Manifest::BlockFile& file : manifest.block_files)
    if (file.name.starts_with("model"))
      check_file(files, directory + "/" + file.name, file, manifest.block_bytes, rank, ranks, beat);
}

}  // namespace strata::train
