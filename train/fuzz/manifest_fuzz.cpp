// Reads a manifest; what is accepted must read back the same, with numbers that fit one another.
// Also reads the input with its hash appended, since a wrong hash would stop nearly all inputs.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "train/checkpoint/manifest.h"

namespace strata::train {
namespace {

void check_manifest(std::string_view text) {
  Manifest manifest;
  try {
    manifest = parse_manifest(text, "input");
  } catch (const DataError&) {  // a refusal is fine
    return;
  }
  STRATA_CHECK(manifest.step >= 0 && !manifest.block_files.empty());
  for (const Manifest::BlockFile& file : manifest.block_files) {
    STRATA_CHECK(is_plain_name(file.name));
    const auto blocks = static_cast<std::int64_t>(file.blocks.size());
    STRATA_CHECK((blocks - 1) * manifest.block_bytes < file.size_bytes &&
                 file.size_bytes <= blocks * manifest.block_bytes);
  }
  for (const Manifest::HashedFile& file : manifest.whole_files)
    STRATA_CHECK(is_whole_file_name(file.name));
  const std::string written = to_text(manifest);
  STRATA_CHECK(to_text(parse_manifest(written, "written")) == written);
}

}  // namespace
}  // namespace strata::train

// Fault 18.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  strata::train::check_manifest(text);
  strata::train::check_manifest(strata::train::seal_manifest(text));
  return 0;
}
