// Runs the fuzz targets on their corpora, so that every build checks what fuzzing once found.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/file.h"
#include "train/fuzz/fuzz_targets.h"

namespace strata::train {
namespace {

using Target = void (*)(std::span<const std::byte>);

/// Each file of the corpus, whole and cut at every length (of large ones, at some).
int replay(const std::string& name, Target target) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STRATA_FUZZ_CORPUS "/" + name)) {
    const std::string content = read_whole_file(entry.path().string(), 1 << 20);
    const auto bytes = std::as_bytes(std::span(content));
    const std::size_t step = std::max<std::size_t>(1, content.size() / 256);
    for (std::size_t size = 0; size < content.size(); size += step) target(bytes.first(size));
    target(bytes);
    ++files;
  }
  return files;
}

TEST(FuzzReplay, Json) { EXPECT_GE(replay("json", fuzz_json), 8); }
TEST(FuzzReplay, Safetensors) { EXPECT_GE(replay("safetensors", fuzz_safetensors), 8); }
TEST(FuzzReplay, Tokens) { EXPECT_GE(replay("tokens", fuzz_tokens), 5); }

}  // namespace
}  // namespace strata::train
