#include "launcher/command/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/integer.h"
#include "core/nearest_name.h"
#include "launcher/command/autotuning.h"
#include "launcher/command/host_filter.h"
#include "launcher/command/hosts_doctor.h"
#include "launcher/command/number_range.h"
#include "launcher/command/option_effects.h"
#include "launcher/command/option_table.h"
#include "launcher/command/rank_count.h"
#include "launcher/command/settle_hosts.h"

namespace strata::launcher {
namespace {

/// An option as typed, with its value.
struct Given {
  std::string name;
  std::string value;
  const OptionEntry* entry = nullptr;
};

std::int64_t integer_of(const Given& given, std::int64_t smallest, std::int64_t largest) {
  const auto value = parse_integer(given.value);
  if (!value || *value < smallest || *value > largest)
    throw InvalidArgument(fmt::format("{} {}: expected an integer from {} to {}", given.name,
                                      given.value, smallest, largest));
  return *value;
}

std::string name_of_interface(const Given& given) {
  constexpr std::size_t kMost = 15;  // of Linux
  if (given.value.empty() || given.value.size() > kMost ||
      given.value.find_first_of("/ \t\n") != std::string::npos)
    throw InvalidArgument(
        fmt::format("{} {}: no name of a network interface; `ip -brief address` lists those there "
                    "are",
                    given.name, given.value));
  return given.value;
}

/// Collects options; finish() checks those that depend on one another.
class Parser {
 public:
  explicit Parser(const Surroundings& surroundings) : surroundings_(surroundings) {}
  void take(const Given& given);
  Options finish();
  /// True if a number that hosts need was typed and is no good: other options would seem wrong,
  /// too, or it would seem to be missing.
  [[nodiscard]] bool lacks_number_of_hosts() const {
    const auto is_typed = [this](OptionUse use) {
      return std::ranges::find(typed_, use, &TypedOption::use) != typed_.end();
    };
    return (!hosts_.count && is_typed(OptionUse::node_count)) ||
           (!hosts_.node && is_typed(OptionUse::node_rank)) ||
           (!options_.master_port && is_typed(OptionUse::master_port));
  }
  /// The word after --autotuning; nullopt: it is not asked for.
  [[nodiscard]] const std::optional<std::string>& autotuning() const { return autotuning_; }

 private:
  void set_ranks(const std::string& typed, int ranks);
  void set_launcher(const Given& given);
  void set_filter(const Given& given);
  void settle_filter();
  void set_listed(const Given& given, std::vector<ListedHost> hosts);
  void set_rendezvous_settings(const Given& given);
  void settle_requeue();

  const Surroundings& surroundings_;
  Options options_;
  GivenHosts hosts_;
  std::vector<TypedOption> typed_;
  std::optional<HostFilter> filter_;
  bool requeue_ = false;
  std::optional<std::string> autotuning_;
};

void Parser::take(const Given& given) {
  typed_.push_back({given.entry->use, given.name + (given.value.empty() ? "" : " " + given.value)});
  switch (given.entry->use) {
    case OptionUse::help:
      options_.show_help = true;
      break;
    case OptionUse::version:
      options_.show_version = true;
      break;
    case OptionUse::ranks:
    case OptionUse::device_count: {
      const int count =
          parse_rank_count(given.name + " " + given.value, given.value, surroundings_.devices);
      set_ranks(given.name + " " + given.value, count);
      if (given.entry->use == OptionUse::device_count) options_.devices.first_devices = count;
      break;
    }
    case OptionUse::all_ranks:
      hosts_.all_ranks = static_cast<int>(integer_of(given, 1, kMaxRanks * kMaxHosts));
      hosts_.all_ranks_by = given.name + " " + given.value;
      break;
    case OptionUse::launcher:
      set_launcher(given);
      break;
    case OptionUse::launcher_arguments: {
      std::istringstream words(given.value);
      for (std::string word; words >> word;) options_.launcher_arguments.push_back(word);
      break;
    }
    case OptionUse::no_prefix:
      options_.prefix = false;
      break;
    case OptionUse::grace:
      options_.grace = std::chrono::seconds(integer_of(given, 0, 86400));
      break;
    case OptionUse::max_restarts:
      options_.restarts = {.most_restarts = static_cast<int>(integer_of(given, 0, 1'000'000)),
                           .without_commit = true};
      break;
    case OptionUse::hang_timeout:
      options_.hang_timeout = std::chrono::seconds(integer_of(given, 0, 86400));
      break;
    case OptionUse::log_directory:
      if (given.value.empty()) throw InvalidArgument(given.name + " needs the name of a folder");
      options_.log_directory = given.value;
      break;
    case OptionUse::network_interface:
      options_.network_interface = name_of_interface(given);
      break;
    case OptionUse::web:
      options_.web_port = static_cast<int>(integer_of(given, 0, 65535));
      break;
    case OptionUse::master_port:
      options_.master_port = static_cast<int>(integer_of(given, 1, 65535));
      break;
    case OptionUse::master_address:
      options_.hosts.address = given.value;
      break;
    case OptionUse::node_count: {
      const NumberRange range = parse_range(given.name, given.value, 1, kMaxHosts);
      hosts_.count = range.most;
      hosts_.least = range.least;
      hosts_.count_by = given.name + " " + given.value;
      break;
    }
    case OptionUse::elastic: {
      const NumberRange range = parse_range(given.name, given.value, 1, kMaxHosts * kMaxRanks);
      options_.hosts.worlds = {range.least, range.most};
      hosts_.elastic_by = given.name + " " + given.value;
      break;
    }
    case OptionUse::rejoin:
      options_.hosts.rejoin = std::chrono::seconds(integer_of(given, 1, 86400));
      break;
    case OptionUse::node_rank:
      hosts_.node = static_cast<int>(integer_of(given, 0, kMaxHosts - 1));
      break;
    case OptionUse::agent:
      hosts_.is_agent = true;
      break;
    case OptionUse::this_host:
      hosts_.only_this = true;
      break;
    case OptionUse::rendezvous:
      hosts_.rendezvous = given.value;
      break;
    case OptionUse::rendezvous_settings:
      set_rendezvous_settings(given);
      break;
    case OptionUse::requeue:
      requeue_ = true;
      break;
    case OptionUse::host_list:
      set_listed(given, parse_host_list(given.name, given.value));
      break;
    case OptionUse::hostfile:
      set_listed(given, read_hostfile(given.value));
      break;
    case OptionUse::run_secret:
      if (given.value.empty()) throw InvalidArgument(given.name + " needs the name of a file");
      options_.hosts.secret = given.value;
      break;
    case OptionUse::autotuning:
      autotuning_ = given.value;
      break;
    case OptionUse::include:
    case OptionUse::exclude:
      set_filter(given);
      break;
    case OptionUse::no_effect:
      options_.notes.push_back(given.name + " has no effect: " + std::string(given.entry->advice));
      break;
    case OptionUse::refused:
      throw InvalidArgument(given.name + " is not supported; " + std::string(given.entry->advice));
  }
}

void Parser::set_ranks(const std::string& typed, int ranks) {
  if (!hosts_.ranks_by.empty() && ranks != options_.ranks)
    throw InvalidArgument(typed + " contradicts " + hosts_.ranks_by + "; give one of them");
  options_.ranks = ranks;
  options_.ranks_given = true;
  hosts_.ranks_by = typed;
}

void Parser::set_launcher(const Given& given) {
  hosts_.launcher = true;
  if (given.value == "local") {
    options_.launcher = Options::Launcher::local;
  } else if (given.value == "mpi" || given.value == "openmpi") {
    options_.launcher = Options::Launcher::mpi;
  } else if (given.value == "slurm") {
    options_.launcher = Options::Launcher::slurm;
  } else {
    throw InvalidArgument("--launcher " + given.value + ": known: local (default), mpi and slurm");
  }
}

void Parser::set_filter(const Given& given) {
  const std::string typed = given.name + " " + given.value;
  if (filter_) throw InvalidArgument(typed + " and " + filter_->typed + ": give one of them");
  filter_ = parse_host_filter(typed, given.value, given.entry->use == OptionUse::exclude);
}

/// Chooses among listed hosts, or among the GPUs of this one if none are listed.
void Parser::settle_filter() {
  if (!filter_) return;
  std::vector<ListedHost>& listed = options_.hosts.listed;
  if (!listed.empty()) {
    listed = filter_hosts(*filter_, listed, options_.ranks);
    return;
  }
  const HostFilter::Entry& entry = filter_->entries.front();
  if (filter_->entries.size() > 1 || !is_this_host(entry.host))
    throw InvalidArgument(filter_->typed +
                          ": without -H or --hostfile, which list hosts, only GPUs of this one are "
                          "chosen so");
  if (filter_->excludes && entry.slots.empty())
    throw InvalidArgument(filter_->typed + " leaves no host; expected as in localhost:0,1");
  options_.devices.typed = filter_->typed;
  (filter_->excludes ? options_.devices.excluded : options_.devices.included) = entry.slots;
  if (filter_->excludes || entry.slots.empty()) return;
  set_ranks(filter_->typed, static_cast<int>(entry.slots.size()));
}

void Parser::set_listed(const Given& given, std::vector<ListedHost> hosts) {
  const std::string typed = given.name + " " + given.value;
  if (!hosts_.listed_by.empty())
    throw InvalidArgument(typed + " and " + hosts_.listed_by + ": give one of them");
  hosts_.listed_by = typed;
  options_.hosts.listed = std::move(hosts);
}

/// Takes torchrun's "join_timeout=SECONDS,KEY=VALUE,...", of which the first alone says something.
void Parser::set_rendezvous_settings(const Given& given) {
  constexpr std::string_view kJoin = "join_timeout";
  std::istringstream settings(given.value);
  for (std::string setting; std::getline(settings, setting, ',');) {
    const std::size_t equals = std::min(setting.find('='), setting.size());
    const std::string key = setting.substr(0, equals);
    if (key != kJoin) {
      if (const std::string meant = suggestion(key, {kJoin}); !meant.empty())
        throw InvalidArgument(
            fmt::format("{} {}: no setting of that name{}", given.name, setting, meant));
      options_.notes.push_back(
          fmt::format("{} {} has no effect: {}", given.name, setting, given.entry->advice));
      continue;
    }
    const Given seconds{given.name + " " + key,
                        setting.substr(std::min(equals + 1, setting.size())), given.entry};
    hosts_.join = std::chrono::seconds(integer_of(seconds, 1, 86400));
  }
}

/// One mlaunch of the run asks for its job to be started again.
void Parser::settle_requeue() {
  if (!requeue_) return;
  const std::string job = surroundings_.value("SLURM_JOB_ID");
  if (job.empty())
    throw InvalidArgument(
        "--requeue: SLURM_JOB_ID is not set, so this is no job of Slurm that could start again");
  if (options_.hosts.coordinates) options_.requeued_job = job;
}

Options Parser::finish() {
  if (options_.show_help || options_.show_version) return std::move(options_);
  settle_filter();
  settle_hosts(surroundings_, hosts_, options_);
  if (!options_.launcher_arguments.empty() && options_.launcher == Options::Launcher::local)
    throw InvalidArgument("--launcher-args goes with --launcher mpi or slurm");
  refuse_without_effect(typed_, hosts_, options_);
  settle_requeue();
  return std::move(options_);
}

[[noreturn]] void refuse_unknown(const std::string& name) {
  std::vector<std::string_view> known;
  for (const OptionEntry& entry : option_table())
    if (entry.use != OptionUse::refused && entry.use != OptionUse::no_effect)
      known.push_back(entry.name);
  throw InvalidArgument("unknown option " + name +
                        (name.size() > 3 ? suggestion(name, known) : std::string()) +
                        " (options of the program go after its name: mlaunch -np 2 train " + name +
                        " ...; see mlaunch --help)");
}

/// Reads the option at `position`; moves `position` after the option and its value.
Given read_option(const std::vector<std::string>& arguments, std::size_t& position) {
  Given given;
  const std::string& typed = arguments[position++];
  const std::size_t equals = typed.find('=');
  given.name = typed.substr(0, equals);
  given.entry = find_option(given.name);
  if (given.entry == nullptr) refuse_unknown(given.name);
  if (!given.entry->takes_value) {
    if (equals != std::string::npos) throw InvalidArgument(given.name + " takes no value");
    return given;
  }
  const bool is_refused = given.entry->use == OptionUse::refused;
  const bool has_next = position < arguments.size();
  if (equals != std::string::npos)
    given.value = typed.substr(equals + 1);
  else if (has_next && !(is_refused && arguments[position].starts_with('-')))
    given.value = arguments[position++];
  else if (!is_refused)
    throw InvalidArgument(given.name + " needs a value");
  return given;
}

/// Collects all errors, one per line.
class Problems {
 public:
  template <typename Body>
  void collect(const Body& body) {
    try {
      body();
    } catch (const InvalidArgument& error) {
      text_ += (text_.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  void raise() const {
    if (!text_.empty()) throw InvalidArgument(text_);
  }

 private:
  std::string text_;
};

}  // namespace

Options parse_options(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  Parser parser(surroundings);
  Problems problems;
  std::size_t position = 0;
  while (position < arguments.size() && arguments[position].size() > 1 &&
         arguments[position][0] == '-') {
    if (arguments[position] == "--") {
      ++position;
      break;
    }
    problems.collect([&] { parser.take(read_option(arguments, position)); });
  }
  Options options;
  if (!parser.lacks_number_of_hosts()) problems.collect([&] { options = parser.finish(); });
  problems.raise();  // before a missing program is reported: a wrong option may have taken its name
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(position),
                         arguments.end());
  if (options.command.empty() && !options.show_help && !options.show_version)
    throw InvalidArgument("which program? For example: mlaunch -np 2 train; see mlaunch --help");
  if (parser.autotuning() && !options.command.empty())
    apply_autotuning(*parser.autotuning(), options);
  settle_hosts_doctor(options);
  return options;
}

}  // namespace strata::launcher
