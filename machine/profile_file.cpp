#include "machine/profile_file.h"

#include <fmt/format.h>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/json_writer.h"

namespace strata::machine {
namespace {

constexpr std::int64_t kProfileVersion = 4;
constexpr std::string_view kRehearsal = "rehearsal", kSteps = "steps";
constexpr std::int64_t kMostNs = std::int64_t{3600} * 1'000'000'000;
constexpr double kMostWork = 1e21;  // FLOPs or bytes of one instruction
constexpr std::array kTypes{DType::f32, DType::bf16, DType::f16};
constexpr std::size_t kSignatureDigits = 16;

std::uint64_t read_signature(const JsonValue& value) {
  const std::string text = value.as_string();
  std::uint64_t signature = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), signature, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != kSignatureDigits ||
      signature == 0)
    value.fail(value.describe() + ", expected 16 hexadecimal digits that are not all 0");
  return signature;
}

DType read_type(const JsonValue& value) {
  const std::string text = value.as_string();
  for (const DType type : kTypes)
    if (text == name_of(type)) return type;
  value.fail(value.describe() + ", expected \"fp32\", \"bf16\" or \"fp16\"");
}

Resource read_resource(const JsonValue& value) {
  const std::string text = value.as_string();
  for (const Resource resource : kAllResources)
    if (text == name_of(resource)) return resource;
  value.fail(value.describe() + ", expected a resource of machine/resource.h");
}

std::int64_t read_ns(const JsonValue& value) {
  const std::int64_t ns = value.as_whole_number();
  if (ns < 1 || ns > kMostNs)
    value.fail(fmt::format("{}, expected nanoseconds from 1 to {}", value.describe(), kMostNs));
  return ns;
}

void require_keys(const JsonValue& object, std::initializer_list<std::string_view> keys) {
  for (const auto& [name, value] : object.members()) {
    bool known = false;
    for (const std::string_view key : keys) known = known || name == key;
    if (!known) value.fail("unknown key");
  }
}

bool is_observed(const JsonValue& source) {
  const std::string text = source.as_string();
  if (text != kRehearsal && text != kSteps)
    source.fail(source.describe() + ", expected \"rehearsal\" or \"steps\"");
  return text == kSteps;
}

double read_work(const JsonValue& value) {
  const double work = value.as_number();
  if (!(work >= 0 && work <= kMostWork))
    value.fail(fmt::format("{}, expected a number from 0 to {}", value.describe(), kMostWork));
  return work;
}

OperationTime read_time(const JsonValue& value) {
  require_keys(value, {"signature", "operation", "resource", "type", "source", "ns", "guess_ns",
                       "flops", "bytes"});
  return {read_signature(value.at("signature")),
          value.at("operation").as_string(),
          read_resource(value.at("resource")),
          read_type(value.at("type")),
          read_ns(value.at("ns")),
          read_ns(value.at("guess_ns")),
          {read_work(value.at("flops")), read_work(value.at("bytes"))}};
}

}  // namespace

void Profile::add_rehearsed(const OperationTimes& rehearsed, bool anew) {
  std::vector<OperationTime> taken;
  for (const OperationTime& time : rehearsed.all()) {
    if (anew) observed.erase(time.signature);
    if (!observed.contains(time.signature)) taken.push_back(time);
  }
  times.merge(OperationTimes(std::move(taken)));
}

void Profile::add_observed(const OperationTimes& seen) {
  for (const OperationTime& time : seen.all()) observed.insert(time.signature);
  times.merge(seen);
}

std::string to_json(const Profile& profile) {
  JsonWriter json;
  json.begin_object().member("version", kProfileVersion).member("of", profile.of).key("times");
  json.begin_array();
  for (const OperationTime& time : profile.times.all()) {
    json.begin_object().member("signature", fmt::format("{:016x}", time.signature));
    json.member("operation", time.operation)
        .member("resource", name_of(time.resource))
        .member("type", name_of(time.type))
        .member("source", profile.observed.contains(time.signature) ? kSteps : kRehearsal);
    json.member("ns", time.ns).member("guess_ns", time.guess_ns);
    json.member("flops", time.work.flops).member("bytes", time.work.bytes).end_object();
  }
  json.end_array().end_object();
  return json.finish() + "\n";
}

bool is_of_earlier_version(std::string_view text, const std::string& file) {
  return parse_json(text, file, {}).at("version").as_integer() < kProfileVersion;
}

Profile read_profile(std::string_view text, const std::string& file) {
  const JsonValue top = parse_json(text, file, {});
  require_keys(top, {"version", "of", "times"});
  const JsonValue version = top.at("version");
  if (version.as_integer() != kProfileVersion)
    version.fail(fmt::format("{}, expected version {}", version.describe(), kProfileVersion));
  Profile profile{top.at("of").as_string(), {}};
  std::vector<OperationTime> times;
  for (const JsonValue& value : top.at("times").elements()) {
    times.push_back(read_time(value));
    if (is_observed(value.at("source")))
      profile.observed.insert(times.back().signature);
    else
      profile.observed.erase(times.back().signature);  // the last of a kind counts
  }
  profile.times = OperationTimes(std::move(times));
  return profile;
}

}  // namespace strata::machine
