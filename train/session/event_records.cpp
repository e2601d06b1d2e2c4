#include "train/session/event_records.h"

#include <bit>
#include <type_traits>

#include "train/session/crc32c.h"

namespace strata::train {
namespace {

// Fields of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
              kEventSessionLog = 7;
constexpr int kSessionLogStatus = 1;
constexpr std::uint64_t kSessionStart = 1;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1, kValueSimple = 2;

/// Wire types of Protobuf.
enum Wire : int { varint = 0, fixed64 = 1, text = 2, fixed32 = 5 };

/// The bytes of a number, the least significant first.
template <typename Number>
std::string little_endian(Number number) {
  static_assert(std::is_unsigned_v<Number>);
  std::string bytes;
  for (std::size_t i = 0; i < sizeof number; ++i)
    bytes += static_cast<char>((number >> (8 * i)) & 0xff);
  return bytes;
}

void put_varint(std::uint64_t number, std::string& message) {
  for (; number >= 0x80; number >>= 7) message += static_cast<char>(number | 0x80);
  message += static_cast<char>(number);
}

void put_key(int field, Wire wire, std::string& message) {
  put_varint(static_cast<std::uint64_t>(field << 3 | wire), message);
}

void put_number(int field, std::uint64_t number, std::string& message) {
  put_key(field, Wire::varint, message);
  put_varint(number, message);
}

/// A text, or a message inside.
void put_bytes(int field, std::string_view bytes, std::string& message) {
  put_key(field, Wire::text, message);
  put_varint(bytes.size(), message);
  message += bytes;
}

std::string event(double wall_time_s, std::int64_t step) {
  std::string message;
  put_key(kEventWallTime, Wire::fixed64, message);
  message += little_endian(std::bit_cast<std::uint64_t>(wall_time_s));
  if (step != 0) put_number(kEventStep, static_cast<std::uint64_t>(step), message);
  return message;
}

/// Checksums of bytes that hold checksums themselves are weak, so TFRecord masks them.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8;
}

}  // namespace

std::string framed(std::string_view message) {
  const std::string length = little_endian(static_cast<std::uint64_t>(message.size()));
  return length + little_endian(masked_crc(length)) + std::string(message) +
         little_endian(masked_crc(message));
}

std::string version_record(double wall_time_s) {
  std::string message = event(wall_time_s, 0);
  put_bytes(kEventFileVersion, "brain.Event:2", message);
  return framed(message);
}

std::string restart_record(double wall_time_s, std::int64_t step) {
  std::string session_log, message = event(wall_time_s, step);
  put_number(kSessionLogStatus, kSessionStart, session_log);
  put_bytes(kEventSessionLog, session_log, message);
  return framed(message);
}

std::string scalars_record(double wall_time_s, std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary, message = event(wall_time_s, step);
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_bytes(kValueTag, scalar.tag, value);
    put_key(kValueSimple, Wire::fixed32, value);
    value += little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)));
    put_bytes(kSummaryValue, value, summary);
  }
  put_bytes(kEventSummary, summary, message);
  return framed(message);
}

}  // namespace strata::train
