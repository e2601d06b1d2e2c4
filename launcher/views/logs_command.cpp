#include "launcher/views/logs_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "core/error.h"
#include "core/json_writer.h"
#include "launcher/views/asked_run.h"
#include "launcher/views/kept_logs.h"
#include "launcher/views/view_options.h"

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;

/// Other hosts of the run have this time to send what their ranks printed.
constexpr std::chrono::seconds kHostsHave{5};
constexpr milliseconds kLook{50};
/// Between questions of one who was disconnected to make room for others.
constexpr milliseconds kBetweenQuestions{200};

void remark(const std::string& text) { std::fprintf(stderr, "mlaunch: %s\n", text.c_str()); }

/// Reads the lines of a run, and prints them.
class Reader {
 public:
  Reader(AskedRun& run, const ViewOptions& options, StandardOutput& output)
      : run_(run), options_(options), output_(output) {}

  /// Prints all that there is, and with --follow what comes.
  void read();

 private:
  void require_rank();
  void wait_for_hosts();
  /// Returns false if nothing follows.
  bool take(const JsonValue& answer);
  [[nodiscard]] std::string shown(const JsonValue& line) const;
  [[nodiscard]] bool is_wanted(const JsonValue& line) const;

  AskedRun& run_;
  const ViewOptions& options_;
  StandardOutput& output_;
  AskLogs asked_;
  bool all_told_ = false;  ///< what the run had at the beginning has been printed
};

/// Throws InvalidArgument if there is no such rank, unless an earlier attempt had it.
void Reader::require_rank() {
  if (!options_.rank) return;
  const auto status = run_.ask(AskStatus{});
  if (!status) return;
  int most = -1;
  for (const JsonValue& rank : status->at("ranks").elements())
    most = std::max(most, static_cast<int>(rank.at("rank").as_integer()));
  if (most < 0 || *options_.rank <= most) return;  // none: between two attempts
  const auto printed = run_.ask(AskLogs{.rank = options_.rank});
  if (printed && printed->at("lines").elements().empty())
    throw InvalidArgument(fmt::format("run {} has ranks 0 to {}, and no rank {}",
                                      status->at("run").as_string(), most, *options_.rank));
}

/// Lets the run get the lines of its other hosts.
void Reader::wait_for_hosts() {
  const auto end = std::chrono::steady_clock::now() + kHostsHave;
  for (;;) {
    const auto answer = run_.ask(AskLogs{.rank = options_.rank, .from_end = true});
    if (!answer) return;
    const auto hosts = answer->at("waiting_for").elements();
    if (hosts.empty()) return;
    if (std::chrono::steady_clock::now() >= end) {
      for (const JsonValue& host : hosts)
        remark("host " + host.as_string() + " has not sent all that its ranks printed");
      return;
    }
    std::this_thread::sleep_for(kLook);
  }
}

void Reader::read() {
  wait_for_hosts();
  require_rank();
  asked_ = {.rank = options_.rank,
            .number = options_.tail.value_or(0),
            .from_end = options_.tail.has_value()};
  for (bool goes_on = true; goes_on;) {
    asked_.follow = all_told_ && options_.follow;
    const auto answer =
        run_.ask(asked_, asked_.follow ? std::nullopt : std::optional(RunsOfUser::kPatience));
    if (answer) {
      goes_on = take(*answer);
    } else if (asked_.follow) {
      // The run made room for others, or was killed.
      std::this_thread::sleep_for(kBetweenQuestions);
      asked_.follow = false;
      goes_on = run_.ask(AskStatus{}).has_value();
      if (!goes_on) remark("the run has ended, and its last lines may be missing");
    } else {
      return;
    }
  }
}

bool Reader::take(const JsonValue& answer) {
  if (const auto ended = answer.find("exit_code")) return false;
  const std::int64_t dropped = answer.at("dropped").as_integer();
  // Who begins with the last lines does not miss those before them.
  if (dropped > 0 && !(asked_.from_end && !all_told_))
    remark(fmt::format("{} {} gone{}", dropped, dropped == 1 ? "line is" : "lines are",
                       all_told_ ? ": this reader is slower than the ranks"
                                 : ": the run keeps the last of each rank"));
  std::string text;
  for (const JsonValue& line : answer.at("lines").elements())
    if (is_wanted(line)) text += shown(line) + "\n";
  output_.print(text);
  if (!output_.takes_text()) return false;
  asked_.number = static_cast<std::uint64_t>(answer.at("next").as_integer());
  asked_.from_end = false;
  const bool more = answer.at("more").as_boolean();
  all_told_ |= !more;
  if (answer.at("ended").as_boolean()) {
    if (more) remark("the run has ended, and more was printed");
    return false;
  }
  return more || options_.follow;
}

bool Reader::is_wanted(const JsonValue& line) const {
  const std::string stream = line.at("stream").as_string();
  return !(options_.only_output && stream != "stdout") &&
         !(options_.only_error && stream != "stderr");
}

std::string Reader::shown(const JsonValue& line) const {
  if (options_.json) return to_string(line, 0);
  const JsonValue rank = line.at("rank");
  const bool has_prefix = !options_.rank && !rank.is(JsonKind::null);
  return (has_prefix ? fmt::format("[{}] ", rank.as_integer()) : "") + line.at("text").as_string();
}

/// Prints the files of a run that has ended, if it kept any.
void read_ended(const JsonValue& ended, const ViewOptions& options, StandardOutput& output) {
  const auto folder = ended.find("log_folder");
  if (!folder || !folder->is(JsonKind::string) || folder->as_string().empty())
    throw InvalidArgument(describe_end(ended) +
                          "\nwhat its ranks printed is kept only while it lives, or with mlaunch "
                          "--log-dir DIR");
  remark(fmt::format("run {} has ended; these are its files in {}, rank by rank",
                     ended.at("run").as_string(), folder->as_string()));
  const auto world = ended.find("world_size");  // another version of mlaunch does not tell
  const bool has_all = print_kept_logs(
      folder->as_string(), world ? static_cast<int>(world->as_integer()) : 0, options, output);
  if (!has_all && !options.rank)
    remark("ranks of other hosts are not shown; their logs are in the --log-dir of each host");
}

void read_local(const ViewOptions& options, StandardOutput& output) {
  const RunsOfUser runs(ControlFolder::places());
  if (const auto ended = runs.find_ended(options.run)) return read_ended(*ended, options, output);
  LocalRun run(runs, runs.choose(options.run));
  Reader(run, options, output).read();
}

}  // namespace

int logs_command(const std::vector<std::string>& arguments, StandardOutput& output) {
  const ViewOptions options = parse_view_options("logs", arguments);
  if (options.show_help) {
    output.print(view_help("logs"));
  } else if (options.is_elsewhere()) {
    RemoteRun run(options);
    Reader(run, options, output).read();
  } else {
    read_local(options, output);
  }
  return 0;
}

}  // namespace strata::launcher
