// Reads token ids of one file: text as bytes, llm.c's and nanoGPT's .bin (docs/formats/tokens.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/data/token_source.h"

namespace strata::train {

/// The form of ids in a file: little-endian, unsigned.
struct TokenLayout {
  std::int64_t offset_bytes = 0;
  int bytes_per_token = 1;
  std::int64_t count = 0;
};

/// Finds the layout of a .bin file that begins with `beginning` (1,024 bytes, or the whole file if
/// it is shorter): llm.c's if it has one of its magic numbers, else uint16 without header. Throws
/// DataError naming `file`, found and expected.
TokenLayout parse_token_layout(std::span<const std::byte> beginning, std::int64_t file_size_bytes,
                               const std::string& file);

/// Opens a token file (.bin) or a text, whose bytes are its tokens. `vocabulary` is the model's;
/// ids are checked when they are read. Throws DataError for missing, empty or malformed files;
/// require_plain_data recognizes files that are no text.
std::shared_ptr<const TokenSource> open_token_file(const std::string& path,
                                                   std::int64_t vocabulary);

/// Opens all of them, concatenated.
std::shared_ptr<const TokenSource> open_token_files(const std::vector<std::string>& paths,
                                                    std::int64_t vocabulary);

}  // namespace strata::train
