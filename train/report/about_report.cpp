#include "train/report/about_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/json.h"
#include "core/json_writer.h"

namespace strata::train {
namespace {

constexpr int kAboutVersion = 2;
constexpr std::array<std::string_view, 10> kAboutKeys{
    "version",          "model",       "parameters",    "blocks",  "device", "ranks",
    "foreseen_seconds", "arena_bytes", "process_bytes", "settings"};

std::int64_t elements_of(const std::vector<runtime::ParameterUnit>& units) {
  std::int64_t elements = 0;
  for (const runtime::ParameterUnit& unit : units)
    for (const runtime::Segment& segment : unit.segments) elements += segment.elements;
  return elements;
}

std::int64_t amount_from(const JsonValue& value) {
  const std::int64_t amount = value.as_integer();
  if (amount < 0) value.fail("expected a number from 0, found " + value.describe());
  return amount;
}

}  // namespace

AboutReport about(const RunReport& report) {
  AboutReport about{.model = report.model,
                    .parameters = elements_of(report.programs.units),
                    .device = report.device,
                    .ranks = report.ranks,
                    .foreseen_seconds = report.foreseen.seconds,
                    .arena_bytes = {},
                    .process_bytes = report.process_bytes,
                    .settings = {}};
  for (const plan::LayerProfile& layer : report.layers) about.blocks.push_back(layer.block);
  for (const runtime::Tier tier : runtime::kAllTiers)
    about.arena_bytes[std::string(name_of(tier))] = report.programs.taken_bytes(tier);
  for (const ResolvedField& field : report.settings) about.settings[field.name] = field.value;
  return about;
}

std::string about_json(const AboutReport& about) {
  JsonWriter json;
  json.begin_object();
  json.member("version", kAboutVersion);
  json.member("model", about.model);
  json.member("parameters", about.parameters);
  json.key("blocks").begin_row();
  for (const std::string& block : about.blocks) json.value(block);
  json.end_array();
  json.member("device", about.device);
  json.member("ranks", about.ranks);
  json.member("foreseen_seconds", about.foreseen_seconds);
  json.key("arena_bytes").begin_object();
  for (const auto& [tier, bytes] : about.arena_bytes) json.member(tier, bytes);
  json.end_object();
  json.member("process_bytes", about.process_bytes);
  json.key("settings").begin_object();
  for (const auto& [name, value] : about.settings) json.member(name, value);
  json.end_object().end_object();
  return json.finish() + "\n";
}

AboutReport read_about(std::string_view text, const std::string& file) {
  const JsonValue top = parse_json(text, file, {.fault = JsonFault::configuration});
  const JsonValue version = top.at("version");
  if (version.as_integer() != kAboutVersion)
    version.fail(fmt::format(
        "expected {}, found {}: the report is of another version; write it again with this one",
        kAboutVersion, version.describe()));
  for (const auto& [key, value] : top.members())
    if (std::ranges::find(kAboutKeys, key) == kAboutKeys.end())
      value.fail(fmt::format("unknown key, expected one of {}", fmt::join(kAboutKeys, ", ")));
  AboutReport about{.model = top.at("model").as_string(),
                    .parameters = amount_from(top.at("parameters")),
                    .device = top.at("device").as_string(),
                    .ranks = static_cast<int>(amount_from(top.at("ranks"))),
                    .foreseen_seconds = top.at("foreseen_seconds").as_number(),
                    .arena_bytes = {},
                    .process_bytes = amount_from(top.at("process_bytes")),
                    .settings = {}};
  for (const JsonValue& block : top.at("blocks").elements())
    about.blocks.push_back(block.as_string());
  for (const auto& [tier, bytes] : top.at("arena_bytes").members())
    about.arena_bytes[tier] = amount_from(bytes);
  for (const auto& [name, value] : top.at("settings").members())
    about.settings[name] = value.as_string();
  return about;
}

}  // namespace strata::train
