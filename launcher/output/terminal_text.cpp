#include "launcher/output/terminal_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace strata::launcher {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kNoColours = "\x1b[0m";

struct Range {
  std::uint32_t first, last;
};
constexpr std::array kNoColumn = std::to_array<Range>(
    {{0x0300, 0x036f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}});
constexpr std::array kTwoColumns = std::to_array<Range>({{0x1100, 0x115f},
                                                         {0x2e80, 0x303e},
                                                         {0x3041, 0xa4cf},
                                                         {0xac00, 0xd7a3},
                                                         {0xf900, 0xfaff},
                                                         {0xfe30, 0xfe6f},
                                                         {0xff00, 0xff60},
                                                         {0xffe0, 0xffe6},
                                                         {0x1f300, 0x1f64f},
                                                         {0x1f680, 0x1f6ff},
                                                         {0x1f900, 0x1f9ff},
                                                         {0x20000, 0x3fffd}});

template <std::size_t N>
bool is_in(const std::array<Range, N>& ranges, std::uint32_t character) {
  for (const Range& range : ranges)
    if (character >= range.first && character <= range.last) return true;
  return false;
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// Length of the escape sequence that begins `text`.
std::size_t escape_bytes(std::string_view text) {
  if (text.size() < 2) return text.size();
  std::size_t end = 2;
  if (text[1] == '[') {  // CSI: parameters, then a final byte
    while (end < text.size() && (text[end] < 0x40 || text[end] > 0x7e)) ++end;
  } else if (text[1] == ']') {  // OSC: ends with BEL or ESC backslash
    while (end < text.size() && text[end] != '\a' && text[end] != kEscape) ++end;
    if (end < text.size() && text[end] == kEscape) ++end;
  } else {
    return end;
  }
  return std::min(end + 1, text.size());
}

/// Length of the UTF-8 character that begins `text`; invalid bytes count as one each.
std::size_t character_bytes(std::string_view text) {
  std::size_t end = 1;
  while (end < text.size() && end < 4 && continues_character(text[end])) ++end;
  return end;
}

std::size_t columns_of(std::string_view character) {
  if (character.size() == 1)
    return static_cast<unsigned char>(character[0]) < 0x20 || character[0] == 0x7f ? 0 : 1;
  std::uint32_t code = static_cast<unsigned char>(character[0]) & (0xffu >> (character.size() + 1));
  for (const char byte : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3fu);
  return is_in(kNoColumn, code) ? 0 : is_in(kTwoColumns, code) ? 2 : 1;
}

}  // namespace

std::string_view visible_part(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (const std::size_t last = line.rfind('\r'); last != std::string_view::npos)
    line.remove_prefix(last + 1);
  for (const std::string_view clears : {"\x1b[K", "\x1b[0K", "\x1b[2K"})
    if (line.starts_with(clears)) line.remove_prefix(clears.size());
  return line;
}

std::string cut_to_columns(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  bool is_coloured = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == kEscape) {
      const std::size_t bytes = escape_bytes(text.substr(at));
      if (text[at + bytes - 1] == 'm') is_coloured = true;
      at += bytes;
      continue;
    }
    const std::size_t bytes = character_bytes(text.substr(at));
    used += columns_of(text.substr(at, bytes));
    if (used > columns)
      return std::string(text.substr(0, at)) + std::string(is_coloured ? kNoColours : "");
    at += bytes;
  }
  return std::string(text);
}

}  // namespace strata::launcher
