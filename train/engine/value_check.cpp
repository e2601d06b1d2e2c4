#include "train/engine/value_check.h"

#include <cstdint>
#include <cstring>

namespace strata::train {
namespace {

constexpr std::size_t kAtOnceBytes = 4096;

/// True if a word has all bits of `exponent` set, so that it is NaN or infinite.
template <typename Word>
bool has_full_exponent(std::span<const std::byte> values, Word exponent) {
  constexpr std::size_t kWords = kAtOnceBytes / sizeof(Word);
  Word words[kWords];
  while (values.size() >= sizeof(Word)) {
    const std::size_t count = values.size() < kAtOnceBytes ? values.size() / sizeof(Word) : kWords;
    if (count < kWords) std::memset(words, 0, sizeof words);
    std::memcpy(words, values.data(), count * sizeof(Word));
    Word found = 0;
    for (const Word word : words) found |= static_cast<Word>((word & exponent) == exponent);
    if (found != 0) return true;
    values = values.subspan(count * sizeof(Word));
  }
  return false;
}

}  // namespace

bool are_finite(DType dtype, std::span<const std::byte> values) {
  switch (dtype) {
    case DType::f64:
      return !has_full_exponent<std::uint64_t>(values, 0x7ff0000000000000U);
    case DType::f32:
      return !has_full_exponent<std::uint32_t>(values, 0x7f800000U);
    case DType::bf16:
      return !has_full_exponent<std::uint16_t>(values, 0x7f80U);
    case DType::f16:
      return !has_full_exponent<std::uint16_t>(values, 0x7c00U);
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::u8:
      return true;
  }
  return true;
}

void ValueCheck::look(std::string_view tensor, DType dtype, std::span<const std::byte> values) {
  if (are_finite(dtype, values)) return;
  const std::lock_guard lock(mutex_);
  if (not_finite_.empty()) not_finite_ = tensor;
}

std::string ValueCheck::not_finite() const {
  const std::lock_guard lock(mutex_);
  return not_finite_;
}

}  // namespace strata::train
