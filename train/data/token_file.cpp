#include "train/data/token_file.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "core/error.h"
#include "core/file.h"
#include "train/data/data_kind.h"

namespace strata::train {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr std::int64_t kHeaderBytes = 1024;  // 256 int32: magic, version, count, zeros

struct LlmcKind {
  std::int32_t magic;
  std::int32_t version;
  int bytes_per_token;
};
/// The token files of GPT-2 and Llama 3 in llm.c (dev/data/data_common.py).
constexpr std::array<LlmcKind, 2> kLlmcKinds{{{20240520, 1, 2}, {20240801, 7, 4}}};

TokenLayout parse_llmc(const LlmcKind& kind, std::span<const std::byte> beginning,
                       std::int64_t file_size_bytes, const std::string& file) {
  if (static_cast<std::int64_t>(beginning.size()) < kHeaderBytes)
    throw DataError(
        fmt::format("{}: a token file with llm.c's magic number has {} bytes, expected a header of "
                    "1024 at least",
                    file, file_size_bytes));
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), beginning.data(), sizeof header);
  if (header[1] != kind.version)
    throw DataError(fmt::format("{}: token file version {}, expected {} for magic number {}", file,
                                header[1], kind.version, kind.magic));
  const std::int64_t expected = kHeaderBytes + std::int64_t{header[2]} * kind.bytes_per_token;
  if (header[2] < 0 || expected != file_size_bytes)
    throw DataError(fmt::format(
        "{}: the header counts {} tokens of {} bytes, expected {} bytes in all, found {}", file,
        header[2], kind.bytes_per_token, expected, file_size_bytes));
  return {kHeaderBytes, kind.bytes_per_token, header[2]};
}

template <typename Id>
void widen(std::span<const std::byte> raw, std::span<std::int32_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Id id = 0;
    std::memcpy(&id, raw.data() + i * sizeof id, sizeof id);
    // A uint32 id beyond int32 becomes negative, which the check refuses.
    out[i] = static_cast<std::int32_t>(id);
  }
}

class TokenFile : public TokenSource {
 public:
  TokenFile(File file, TokenLayout layout, std::int64_t vocabulary)
      : file_(std::move(file)), layout_(layout), vocabulary_(vocabulary) {}

  [[nodiscard]] std::int64_t size() const override { return layout_.count; }
  [[nodiscard]] std::int64_t vocabulary_bound() const override { return vocabulary_; }
  [[nodiscard]] std::string name() const override { return file_.path(); }

  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    STRATA_CHECK(first >= 0 && first <= layout_.count - std::ssize(out), file_.path(), first);
    std::vector<std::byte> raw(out.size() * static_cast<std::size_t>(layout_.bytes_per_token));
    file_.read(layout_.offset_bytes + first * layout_.bytes_per_token, raw, "tokens");
    switch (layout_.bytes_per_token) {
      case 1:
        widen<std::uint8_t>(raw, out);
        break;
      case 2:
        widen<std::uint16_t>(raw, out);
        break;
      default:
        widen<std::uint32_t>(raw, out);
    }
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i] < 0 || out[i] >= vocabulary_)
        throw_id(first + static_cast<std::int64_t>(i), out[i]);
  }

 private:
  [[noreturn]] void throw_id(std::int64_t position, std::int32_t id) const {
    const std::int64_t offset = layout_.offset_bytes + position * layout_.bytes_per_token;
    throw DataError(
        fmt::format("{}: token {} (byte {}) is {}, expected less than the model's vocabulary of "
                    "{}: tokenize the text for this model",
                    file_.path(), position, offset, static_cast<std::uint32_t>(id), vocabulary_));
  }

  File file_;
  TokenLayout layout_;
  std::int64_t vocabulary_;
};

File open_data(const std::string& path) {
  try {
    return File::open_for_reading(path);
  } catch (const IoError& error) {
    throw DataError(std::string("data file ") + error.what());
  }
}

}  // namespace

TokenLayout parse_token_layout(std::span<const std::byte> beginning, std::int64_t file_size_bytes,
                               const std::string& file) {
  std::int32_t magic = 0;
  if (beginning.size() >= sizeof magic) std::memcpy(&magic, beginning.data(), sizeof magic);
  for (const LlmcKind& kind : kLlmcKinds)
    if (kind.magic == magic) return parse_llmc(kind, beginning, file_size_bytes, file);
  if (file_size_bytes % 2 != 0)
    throw DataError(
        fmt::format("{}: a .bin file without llm.c's magic number holds uint16 tokens, but has an "
                    "odd size of {} bytes",
                    file, file_size_bytes));
  return {0, 2, file_size_bytes / 2};
}

std::shared_ptr<const TokenSource> open_token_file(const std::string& path,
                                                   std::int64_t vocabulary) {
  File file = open_data(path);
  const std::int64_t size = file.size_bytes();
  TokenLayout layout{0, 1, size};
  if (is_token_file(path)) {
    std::array<std::byte, kHeaderBytes> header{};
    const auto beginning =
        std::span(header).first(static_cast<std::size_t>(std::min(size, kHeaderBytes)));
    file.read(0, beginning, "the header");
    layout = parse_token_layout(beginning, size, path);
  }
  if (layout.count == 0)
    throw DataError(path + ": the data file is empty, expected text or tokens");
  return std::make_shared<TokenFile>(std::move(file), layout, vocabulary);
}

std::shared_ptr<const TokenSource> open_token_files(const std::vector<std::string>& paths,
                                                    std::int64_t vocabulary) {
  if (paths.empty()) throw InvalidArgument("no data file: give --data FILE");
  std::vector<std::shared_ptr<const TokenSource>> parts;
  for (const std::string& path : paths) parts.push_back(open_token_file(path, vocabulary));
  return concatenate(std::move(parts));
}

}  // namespace strata::train
