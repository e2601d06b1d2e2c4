#include "launcher/views/runs_of_user.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/nearest_name.h"
#include "core/system_call.h"
#include "launcher/group/process_state.h"
#include "launcher/views/told_members.h"

namespace strata::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMaxAnswerBytes = std::size_t{16} << 20;
constexpr std::chrono::hours kLately{24};
constexpr milliseconds kForEver = std::chrono::hours(24 * 365);
constexpr const char* kOnlyThese =
    "; seen are runs of this user on this host that mlaunch itself supervises (not those that "
    "--launcher mpi without -H or --hostfile hands over to mpirun, nor other users': sudo -u USER "
    "mlaunch status)";

/// Returns false once the limit has passed.
bool is_readable(const UniqueFd& connection, Clock::time_point limit) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(limit - Clock::now()).count();
    pollfd entry{connection.get(), POLLIN, 0};
    const int count =
        ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (count < 0 && errno != EINTR) throw_system_error("waiting for a run's answer");
    if (count > 0) return true;
    if (left <= 0) return false;
  }
}

/// Returns the number of the process that listens at the other end; 0: it cannot be seen from here.
pid_t listener_of(const UniqueFd& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

/// Says why an mlaunch does not answer, and what lets it go on.
std::string why_silent(pid_t process) {
  if (process <= 0) return "its mlaunch may be suspended or busy";
  const ProcessState state = read_process_state(process);
  const std::string name = fmt::format("its mlaunch (process {})", process);
  if (state.frozen) return name + " is in a frozen control group (" + state.thaw + ")";
  if (state.stopped) return fmt::format("{} is stopped (kill -CONT {})", name, process);
  return name + " is neither stopped nor frozen, and may be busy";
}

template <typename Ids>
std::string several_text(const std::string& typed, const Ids& ids) {
  return fmt::format("several runs begin with {}: {}; type more of the id", typed,
                     fmt::join(ids, " "));
}

/// Reads what a run told at its end; nullopt: that is broken.
std::optional<JsonValue> read_end(const std::string& line) {
  try {
    const JsonValue end = parse_json(line, "the end of a run", {});
    const bool is_whole = end.is(JsonKind::object) && !told_text(end, "run").empty();
    return is_whole ? std::optional(end) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> read_answer(const UniqueFd& connection, milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  std::string text;
  std::array<char, 65536> bytes;
  while (is_readable(connection, end)) {
    const ssize_t count = ::read(connection.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;  // a run that is killed may also reset the connection
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (text.size() > kMaxAnswerBytes) throw HostError("a run answers without an end");
  }
  return std::nullopt;
}

RunsOfUser::RunsOfUser(const std::vector<std::string>& places) {
  std::optional<HostError> refusal;
  bool is_any_there = false;
  for (const std::string& place : places) {
    try {
      auto folder = ControlFolder::find(place);
      if (!folder) continue;
      is_any_there |= !folder->run_ids().empty();
      folders_.push_back(std::move(*folder));
    } catch (const HostError& error) {
      refusal = error;
    }
  }
  if (refusal && !is_any_there) throw HostError(*refusal);
}

std::vector<std::string> RunsOfUser::living() const {
  std::vector<std::string> found;
  for (const ControlFolder& folder : folders_)
    for (const std::string& id : folder.run_ids()) {
      bool lives = true;
      try {
        lives = folder.connect(id).has_value();
      } catch (const HostError&) {
        // It lives, but is suspended or busy.
      }
      if (lives) found.push_back(id);
    }
  std::sort(found.begin(), found.end());
  return found;
}

/// Returns the records, by id, of runs that do not listen and have not told their end. Broken ones
/// are left out.
std::map<std::string, RunRecord> RunsOfUser::left_behind() const {
  std::map<std::string, RunRecord> found;
  for (const ControlFolder& folder : folders_)
    for (const std::string& id : folder.recorded_ids()) {
      auto record = read_record(folder.record_of(id));
      if (!record || record->run_id != id) continue;
      const auto [place, is_new] = found.try_emplace(id, *record);
      if (!is_new && place->second.seen_at < record->seen_at) place->second = std::move(*record);
    }
  // Looked at after the records: a run may begin or end meanwhile.
  for (const std::string& id : living()) found.erase(id);
  for (const ControlFolder& folder : folders_)
    for (const std::string& id : folder.ended_ids()) found.erase(id);
  return found;
}

std::vector<RunRecord> RunsOfUser::left_behind_lately(
    const std::function<bool(const RunRecord&)>& is_wanted) const {
  const std::string since = utc_text(std::chrono::system_clock::now() - kLately);
  std::vector<RunRecord> records;
  for (auto& [id, record] : left_behind())
    if (record.seen_at >= since && is_wanted(record)) records.push_back(record);
  std::ranges::stable_sort(records, std::ranges::greater(), &RunRecord::seen_at);
  return records;
}

std::vector<RunRecord> RunsOfUser::killed_lately() const {
  return left_behind_lately([](const RunRecord& record) { return record.was_killed(); });
}

std::vector<RunRecord> RunsOfUser::elsewhere_lately() const {
  return left_behind_lately([](const RunRecord& record) { return !record.is_here(); });
}

std::vector<RunRecord> RunsOfUser::silent() const {
  std::vector<RunRecord> records;
  for (auto& [id, record] : left_behind())
    if (record.is_here() && !record.was_killed()) records.push_back(record);
  return records;
}

std::optional<RunRecord> RunsOfUser::unheard(const std::string& run_id) const {
  const auto all = left_behind();
  const auto found = all.find(run_id);
  if (found == all.end() || found->second.was_killed()) return std::nullopt;
  return found->second;
}

/// Names the run that was killed last, if one was lately.
std::string RunsOfUser::killed_text() const {
  const std::vector<RunRecord> killed = killed_lately();
  return killed.empty() ? ""
                        : fmt::format("; run {} was killed: mlaunch status {} tells what is known",
                                      killed.front().run_id, killed.front().run_id);
}

std::string RunsOfUser::choose(const std::string& typed) const {
  const auto is_meant = [&](const std::string& id) { return id.starts_with(typed); };
  std::vector<std::string> ids = living(), meant;
  for (const RunRecord& record : silent())
    if (std::ranges::count(ids, record.run_id) == 0) ids.push_back(record.run_id);
  std::ranges::sort(ids);
  std::ranges::copy_if(ids, std::back_inserter(meant), is_meant);
  if (meant.size() == 1 && !unheard(meant.front())) return meant.front();
  if (meant.size() <= 1 && !typed.empty()) {
    const std::map<std::string, RunRecord> records = left_behind();
    std::set<std::string> known;  // that do not listen, or have ended
    for (const auto& [id, record] : records)
      if (is_meant(id)) known.insert(id);
    for (const ControlFolder& folder : folders_)
      for (const std::string& id : folder.ended_ids())
        if (is_meant(id)) known.insert(id);
    if (known.size() > 1) throw InvalidArgument(several_text(typed, known));
    for (const auto& [id, record] : records)
      if (known.contains(id) && !record.was_killed()) throw NoAnswer(record);
  }
  if (meant.size() == 1) throw NoAnswer(*unheard(meant.front()));
  const std::string ended =
      typed.empty() ? ""
                    : fmt::format(
                          "; of runs that have ended the last {} are known, and --log-dir "
                          "DIR keeps the logs of each in DIR/RUN",
                          ControlFolder::kMostEnds);
  if (ids.empty()) throw InvalidArgument("no run is there" + ended + killed_text() + kOnlyThese);
  const std::string there = fmt::format("there are: {}", fmt::join(ids, " "));
  if (typed.empty()) throw InvalidArgument("several runs are there, name one; " + there);
  if (!meant.empty()) throw InvalidArgument(several_text(typed, meant));
  throw InvalidArgument("no run begins with " + typed +
                        suggestion(typed, std::vector<std::string_view>(ids.begin(), ids.end())) +
                        "; " + there + ended + kOnlyThese);
}

std::optional<JsonValue> RunsOfUser::find_ended(const std::string& typed) const {
  const auto is_meant = [&](const std::string& id) { return id.starts_with(typed); };
  if (typed.empty() || std::ranges::any_of(living(), is_meant)) return std::nullopt;
  std::map<std::string, std::optional<JsonValue>> found;  // by id; nullopt: it may go on
  for (const auto& [id, record] : left_behind())
    if (is_meant(id)) found[id] = record.was_killed() ? std::optional(record.told) : std::nullopt;
  for (const ControlFolder& folder : folders_)
    for (const std::string& id : folder.ended_ids())
      if (is_meant(id)) found[id] = read_end(folder.end_of(id));
  if (found.size() != 1) return std::nullopt;
  return found.begin()->second;
}

std::optional<UniqueFd> RunsOfUser::send(const std::string& run_id,
                                         const std::string& request) const {
  for (const ControlFolder& folder : folders_) {
    auto connection = folder.connect(run_id);
    if (!connection) continue;
    const std::string line = request + "\n";
    // It fails only if the run has just ended, which reading shows.
    (void)::send(connection->get(), line.data(), line.size(), MSG_NOSIGNAL);
    return connection;
  }
  return std::nullopt;
}

std::optional<JsonValue> RunsOfUser::ask(const std::string& run_id, const std::string& request,
                                         std::optional<milliseconds> limit) const {
  const auto connection = send(run_id, request);
  if (!connection) return std::nullopt;
  const auto text = read_answer(*connection, limit.value_or(kForEver));
  if (!text) {
    const pid_t process = listener_of(*connection);
    throw NoAnswer(run_id, process, why_silent(process));
  }
  if (text->empty()) return std::nullopt;  // it ended meanwhile
  const JsonValue answer = parse_json(*text, "answer of run " + run_id, {});
  if (const auto error = answer.find("error"))
    throw HostError("run " + run_id +
                    " belongs to another version of mlaunch: " + error->as_string());
  return answer;
}

}  // namespace strata::launcher
