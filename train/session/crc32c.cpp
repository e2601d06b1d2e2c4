#include "train/session/crc32c.h"

#include <array>

namespace strata::train {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // bits reversed

/// The checksum of each byte alone.
constexpr std::array<std::uint32_t, 256> byte_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kBytes = byte_table();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t value = ~std::uint32_t{0};
  for (const char c : bytes)
    value = (value >> 8) ^ kBytes[(value ^ static_cast<unsigned char>(c)) & 0xff];
  return ~value;
}

}  // namespace strata::train
