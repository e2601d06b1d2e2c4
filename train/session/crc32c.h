// CRC-32C (Castagnoli), the checksum of TFRecord files (RFC 3720, appendix B.4 has values).
#pragma once

#include <cstdint>
#include <string_view>

namespace strata::train {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace strata::train
