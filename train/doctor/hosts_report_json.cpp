#include "core/json.h"
#include "core/json_writer.h"
#include "train/doctor/hosts_report.h"

namespace strata::train {
namespace {

JsonValue parse(const std::string& json) { return parse_json(json, "what a host found", {}); }

}  // namespace

std::string to_json(const HostFacts& facts) {
  JsonWriter json(0);
  json.begin_object();
  json.member("name", facts.name).member("address", facts.address);
  json.member("interface", facts.interface).member("port", facts.port);
  json.member("no_port", facts.no_port).member("programs", facts.programs);
  json.key("build").begin_object();
  for (const auto& [file, hash] : facts.build) json.member(file, hash);
  json.end_object().member("processor", facts.processor);
  json.member("cores", facts.cores).member("available_bytes", facts.available_bytes);
  json.member("locked_bytes", facts.locked_bytes);
  json.member("shared_memory_bytes", facts.shared_memory_bytes).key("gpus").begin_array();
  for (const std::string& gpu : facts.gpus) json.value(gpu);
  return json.end_array().end_object().finish();
}

HostFacts read_host_facts(const std::string& text) {
  const JsonValue json = parse(text);
  HostFacts facts{.name = json.at("name").as_string(),
                  .address = json.at("address").as_string(),
                  .interface = json.at("interface").as_string(),
                  .port = static_cast<int>(json.at("port").as_integer()),
                  .no_port = json.at("no_port").as_string(),
                  .programs = json.at("programs").as_string(),
                  .build = {},
                  .processor = json.at("processor").as_string(),
                  .cores = static_cast<int>(json.at("cores").as_integer()),
                  .available_bytes = json.at("available_bytes").as_integer(),
                  .locked_bytes = json.at("locked_bytes").as_integer(),
                  .shared_memory_bytes = json.at("shared_memory_bytes").as_integer()};
  for (const auto& [file, hash] : json.at("build").members())
    facts.build.emplace(file, hash.as_string());
  for (const JsonValue& gpu : json.at("gpus").elements()) facts.gpus.push_back(gpu.as_string());
  return facts;
}

std::string to_json(const HostLinks& links) {
  JsonWriter json(0);
  json.begin_object().key("unreached").begin_array();
  for (const HostLinks::Unreached& one : links.unreached)
    json.begin_object().member("host", one.host).member("why", one.why).end_object();
  json.end_array().member("farthest", links.farthest);
  json.member("round_trip_seconds", links.round_trip_seconds).key("streams").begin_array();
  for (const HostLinks::Stream& one : links.streams)
    json.begin_object()
        .member("host", one.host)
        .member("bytes_per_second", one.bytes_per_second)
        .end_object();
  json.end_array().member("clock_ahead_seconds", links.clock_ahead_seconds);
  json.member("no_file", links.no_file).member("no_lock", links.no_lock);
  return json.end_object().finish();
}

HostLinks read_host_links(const std::string& text) {
  const JsonValue json = parse(text);
  HostLinks links{.farthest = static_cast<int>(json.at("farthest").as_integer()),
                  .round_trip_seconds = json.at("round_trip_seconds").as_number(),
                  .clock_ahead_seconds = json.at("clock_ahead_seconds").as_number(),
                  .no_file = json.at("no_file").as_string(),
                  .no_lock = json.at("no_lock").as_string()};
  for (const JsonValue& one : json.at("unreached").elements())
    links.unreached.push_back(
        {static_cast<int>(one.at("host").as_integer()), one.at("why").as_string()});
  for (const JsonValue& one : json.at("streams").elements())
    links.streams.push_back(
        {static_cast<int>(one.at("host").as_integer()), one.at("bytes_per_second").as_number()});
  return links;
}

}  // namespace strata::train
