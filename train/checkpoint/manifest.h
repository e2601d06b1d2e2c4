// The manifest.json of a checkpoint lists all it consists of, to the byte. It is written last; a
// directory without it, or with one that its own hash contradicts, is no checkpoint.
//
// Version 1, JSON in this order: strata_checkpoint (the version), step, facts (strings about the
// run that wrote it), block_bytes, block_files (name, bytes, XXH3-128 of each block one after the
// other), whole_files (name, bytes, XXH3-128), and as the last line the XXH3-128 of all text before
// it. Hashes are 32 hexadecimal digits, most significant first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "train/checkpoint/checkpoint_layout.h"

namespace strata::train {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr std::int64_t kManifestLimitBytes = std::int64_t{256} << 20;
/// Limit on the size of config.json, indexes and similar files.
inline constexpr std::int64_t kWholeFileLimitBytes = std::int64_t{256} << 20;

using Facts = std::vector<std::pair<std::string, std::string>>;

/// Key of the fact that says what in a checkpoint is not finite. Older checkpoints do not have it.
inline constexpr const char* kNotFiniteFact = "not_finite";

/// The hash of a block, by the rank that wrote it.
struct BlockHash {
  std::int64_t block = 0;  ///< its number in the CheckpointLayout
  Hash128 hash;
};

/// A small file that is to be written.
struct WholeFile {
  std::string name;
  std::string text;
};

struct Manifest {
  struct BlockFile {
    std::string name;
    std::int64_t size_bytes = 0;
    std::vector<Hash128> blocks;
  };
  struct HashedFile {
    std::string name;
    std::int64_t size_bytes = 0;
    Hash128 hash;
  };
  std::int64_t step = 0;
  Facts facts;  ///< keeps the order given; keys differ
  std::int64_t block_bytes = kBlockBytes;
  std::vector<BlockFile> block_files;   ///< names end with ".safetensors"
  std::vector<HashedFile> whole_files;  ///< all other files, at most one folder deep

  /// Returns null if there is no such fact.
  [[nodiscard]] const std::string* find_fact(std::string_view key) const;
  [[nodiscard]] const HashedFile* find_whole_file(std::string_view name) const;
  /// Bytes of all files but the manifest.
  [[nodiscard]] std::int64_t total_bytes() const;
};

/// `hashes`: those of all ranks, in any order. Throws InternalError if a block was written by no
/// rank or twice, or a small file's name is taken or not allowed in a checkpoint.
Manifest make_manifest(const CheckpointLayout& layout, std::int64_t step, Facts facts,
                       std::span<const WholeFile> whole_files, std::span<const BlockHash> hashes);

/// Returns the text of the file; equal manifests give equal texts.
std::string to_text(const Manifest& manifest);

/// Throws DataError, naming `file`, unless the text is complete and everything in it makes sense:
/// known version, no unknown key, plain and different file names, a hash for every block.
Manifest parse_manifest(std::string_view text, const std::string& file);

/// True if a manifest.json is Strata's, even if truncated or changed: it has one of the format's
/// keys, or is not even JSON. Other programs have files of this name, too.
bool is_manifest(std::string_view text);

/// Appends to `body` the last line, which completes a manifest.
std::string seal_manifest(std::string_view body);

/// True if a file may have that name: printable ASCII, no folder, not beginning with a dot.
bool is_plain_name(std::string_view name);
/// True if a whole file may have that name: a plain one, or two with a '/' between (in a folder).
bool is_whole_file_name(std::string_view name);

}  // namespace strata::train
