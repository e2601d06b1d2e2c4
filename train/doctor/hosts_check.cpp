#include "train/doctor/hosts_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "comm/hosts/listen_address.h"
#include "core/error.h"
#include "core/file.h"
#include "core/run_id.h"
#include "train/checkpoint/output_lock.h"
#include "train/doctor/host_probe.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kOthersHave{60'000};
constexpr milliseconds kAllStreams{1000};  ///< of one host
constexpr milliseconds kLongStream{200};
constexpr std::size_t kMostFailures = 5;  ///< each may take 2 s
constexpr std::int64_t kMostFileBytes = 4096;

std::string key(const char* name, int rank) { return fmt::format("doctor/{}/{}", name, rank); }

/// Where the rank of a host listens.
struct Place {
  std::string address;
  int port = 0;  ///< 0: it does not
};

/// The part of one rank.
class HostsCheck {
 public:
  HostsCheck(const RankContext& context, HostFacts own, const std::string& output)
      : context_(context), store_(*context.store), own_(std::move(own)), output_(output) {}

  HostsReport run();

 private:
  void listen();
  std::vector<HostFacts> exchange();
  void offer_folder();
  void look_at_folder();
  void reach_all();
  void reach(int host);
  void send_to_some();
  [[nodiscard]] bool is_first() const { return context_.rank == 0; }
  std::string get(const std::string& name) { return store_.get(name, kOthersHave); }

  const RankContext& context_;
  KeyValueStore& store_;
  HostFacts own_;
  HostLinks links_;
  const std::string output_;
  std::string folder_;  ///< in the output folder, for this check alone
  std::optional<ProbeServer> server_;
  std::string word_;  ///< by which ranks of this check know one another
  std::vector<Place> places_;
  std::optional<OutputLock> lock_;
};

void HostsCheck::listen() {
  try {
    own_.address = comm::listen_address(context_);
    own_.interface = comm::interface_of(own_.address);
    server_.emplace(own_.address);
    own_.port = server_->port();
  } catch (const Error& error) {
    own_.no_port = error.what();
  }
}

/// Brings together what all hosts say. Rank 0 returns it; all learn where the others listen.
std::vector<HostFacts> HostsCheck::exchange() {
  store_.put(key("facts", context_.rank), to_json(own_));
  std::vector<HostFacts> all;
  if (is_first()) {
    std::string places = make_run_id() + "\n";
    for (int rank = 0; rank < context_.world; ++rank) {
      all.push_back(read_host_facts(get(key("facts", rank))));
      places += fmt::format("{} {}\n", all.back().address.empty() ? "-" : all.back().address,
                            all.back().port);
    }
    offer_folder();
    store_.put("doctor/places", places + folder_);
  }
  std::istringstream lines(get("doctor/places"));
  lines >> word_;
  places_.resize(static_cast<std::size_t>(context_.world));
  for (Place& place : places_) lines >> place.address >> place.port;
  lines.ignore(1);
  std::getline(lines, folder_);
  return all;
}

/// Returns the folder itself, or, if a run is still to make it, the innermost that is there.
fs::path existing(const std::string& folder) {
  fs::path path = fs::absolute(folder);
  while (!fs::exists(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

/// Makes a folder with a file in it, and holds its lock.
void HostsCheck::offer_folder() {
  if (output_.empty()) return;
  try {
    const std::string folder = existing(output_) / (".doctor-" + context_.run_id);
    fs::create_directory(folder);
    folder_ = folder;
    write_file_atomically(folder + "/word", context_.run_id);
    lock_.emplace(folder, LockOwner{context_.host, 0, context_.run_id});
  } catch (const fs::filesystem_error& error) {
    links_.no_file = "nothing can be made there: " + error.code().message();
  } catch (const Error& error) {
    (folder_.empty() ? links_.no_file : links_.no_lock) = error.what();
  }
}

void HostsCheck::look_at_folder() {
  if (is_first() || folder_.empty()) return;
  // A run looks where its own working directory leads, which may be another one on each host.
  const fs::path offered = folder_;
  fs::path folder;
  try {
    folder = existing(output_) / offered.filename();
    if (read_whole_file(folder / "word", kMostFileBytes) != context_.run_id)
      links_.no_file = "another file than host 0's is there";
  } catch (const fs::filesystem_error& error) {
    links_.no_file = "it cannot be looked at: " + error.code().message();
  } catch (const Error&) {
    links_.no_file = "host 0's file is not seen there";
    if (folder != offered)
      links_.no_file += fmt::format(", which is {} here and {} on host 0",
                                    folder.parent_path().string(), offered.parent_path().string());
  }
  if (!links_.no_file.empty()) return;
  try {
    (void)OutputLock::join(folder);
  } catch (const HostError&) {
    links_.no_lock = "a lock of host 0 is not seen there";
  } catch (const Error& error) {
    links_.no_lock = error.what();
  }
}

void HostsCheck::reach(int host) {
  const Place& place = places_[static_cast<std::size_t>(host)];
  if (place.port == 0 || links_.unreached.size() >= kMostFailures) return;
  try {
    const Probe::Answer answer = Probe(place.address, place.port, word_).ask();
    const double seconds = std::chrono::duration<double>(answer.round_trip).count();
    if (host == 0)
      links_.clock_ahead_seconds = -std::chrono::duration<double>(answer.clock_ahead).count();
    if (links_.farthest >= 0 && seconds <= links_.round_trip_seconds) return;
    links_.farthest = host;
    links_.round_trip_seconds = seconds;
  } catch (const HostError& error) {
    links_.unreached.push_back({host, error.what()});
  }
}

void HostsCheck::reach_all() {
  for (int step = 1; step < context_.world; ++step) reach((context_.rank + step) % context_.world);
  // Waits until all hosts have asked, since streams would disturb their round trips.
  store_.put(key("reached", context_.rank), "");
  if (is_first()) {
    for (int rank = 0; rank < context_.world; ++rank) (void)get(key("reached", rank));
    store_.put("doctor/all_reached", "");
  }
  (void)get("doctor/all_reached");
}

/// Sends to the hosts that are 1, 2, 4 and so on after this one, as all do at the same time.
void HostsCheck::send_to_some() {
  int streams = 0;
  for (int step = 1; step < context_.world; step *= 2) ++streams;
  const milliseconds time = std::min(kLongStream, kAllStreams / std::max(streams, 1));
  for (int step = 1; step < context_.world; step *= 2) {
    const int host = (context_.rank + step) % context_.world;
    const Place& place = places_[static_cast<std::size_t>(host)];
    const bool is_known = std::ranges::any_of(
        links_.unreached, [host](const HostLinks::Unreached& one) { return one.host == host; });
    if (place.port == 0 || is_known) continue;
    try {
      links_.streams.push_back({host, Probe(place.address, place.port, word_).send_for(time)});
    } catch (const HostError& error) {
      links_.unreached.push_back({host, error.what()});
    }
  }
}

HostsReport HostsCheck::run() {
  listen();
  HostsReport report{.hosts = exchange(), .links = {}, .output = output_};
  if (server_) server_->serve(word_);
  look_at_folder();
  reach_all();
  send_to_some();
  store_.put(key("links", context_.rank), to_json(links_));
  if (is_first()) {
    for (int rank = 0; rank < context_.world; ++rank)
      report.links.push_back(read_host_links(get(key("links", rank))));
    lock_.reset();
    std::error_code ignored;  // what is left of it is said nowhere: it has done its work
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
    store_.put("doctor/done", "");
  }
  (void)get("doctor/done");  // until then the others may ask this host
  return report;
}

/// Hosts may have one name, as containers do.
void tell_apart(std::vector<HostFacts>& hosts) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (!names.insert(hosts[i].name).second) hosts[i].name += fmt::format(" (host {})", i);
}

}  // namespace

HostsReport check_hosts(const RankContext& context, const HostFacts& own,
                        const std::string& output) {
  if (context.world < 2 || context.local_world != 1 || !context.store)
    throw InvalidArgument(
        "doctor --hosts looks at several hosts, one rank on each: mlaunch -H a,b doctor --hosts, "
        "or with --hostfile, --launcher slurm or --nnodes as the run will be");
  HostsReport report = HostsCheck(context, own, output).run();
  tell_apart(report.hosts);
  return report;
}

}  // namespace strata::train
