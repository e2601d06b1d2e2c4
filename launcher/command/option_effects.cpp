#include "launcher/command/option_effects.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"

namespace strata::launcher {
namespace {

/// Says how a run is started, on which the effect of options depends.
enum class Where {
  mpirun,  ///< mpirun starts the ranks, and mlaunch is gone
  alone,   ///< on this host, and nothing says how many hosts there are
  listed,  ///< on hosts that this mlaunch starts itself on
};

struct Rule {
  Where where;
  OptionUse use;
  std::string_view advice;
};

constexpr std::string_view kUnwatched =
    "with --launcher mpi and no -H or --hostfile mpirun alone watches over the ranks; leave "
    "--launcher out, or name hosts";
constexpr std::string_view kOneHost = "--nnodes does not say that there are several hosts";
constexpr std::string_view kNotSeveral =
    "this run has one host; say with --nnodes, -H or --hostfile that it has more";
constexpr std::string_view kStartsAll = "this mlaunch starts all hosts; leave it out";

constexpr auto kRules = std::to_array<Rule>({
    {Where::mpirun, OptionUse::max_restarts, kUnwatched},
    {Where::mpirun, OptionUse::hang_timeout, kUnwatched},
    {Where::mpirun, OptionUse::grace, kUnwatched},
    {Where::mpirun, OptionUse::web, kUnwatched},
    {Where::mpirun, OptionUse::requeue, kUnwatched},
    {Where::mpirun, OptionUse::log_directory,
     "mpirun keeps output by: --launcher-args \"--output-filename DIR\""},
    {Where::mpirun, OptionUse::master_port,
     "ranks of mpirun get MASTER_PORT by: --launcher-args \"-x MASTER_PORT=PORT\""},
    {Where::mpirun, OptionUse::master_address,
     "ranks of mpirun get MASTER_ADDR by: --launcher-args \"-x MASTER_ADDR=ADDRESS\""},
    {Where::mpirun, OptionUse::network_interface,
     "mpirun connects its ranks by: --launcher-args \"--mca btl_tcp_if_include NAME\""},
    {Where::alone, OptionUse::network_interface, kNotSeveral},
    {Where::alone, OptionUse::rejoin, kNotSeveral},
    {Where::alone, OptionUse::run_secret, kNotSeveral},
    {Where::alone, OptionUse::node_rank, kOneHost},
    {Where::listed, OptionUse::agent, kStartsAll},
    {Where::listed, OptionUse::this_host, "hosts are listed, and it says that there is one"},
    {Where::listed, OptionUse::rendezvous,
     "hosts are listed; --master-addr and --master-port say where this mlaunch listens for them"},
});

bool is(Where where, const GivenHosts& given, const Options& options) {
  const bool has_list = !options.hosts.listed.empty();
  switch (where) {
    case Where::mpirun:
      return options.launcher == Options::Launcher::mpi && !has_list;
    case Where::alone:
      return !has_list && !given.count && !given.is_agent;
    case Where::listed:
      return has_list;
  }
  return false;
}

}  // namespace

void refuse_without_effect(const std::vector<TypedOption>& typed, const GivenHosts& given,
                           const Options& options) {
  std::string text;
  for (const TypedOption& option : typed) {
    const auto rule = std::ranges::find_if(kRules, [&](const Rule& one) {
      return one.use == option.use && is(one.where, given, options);
    });
    if (rule == kRules.end()) continue;
    text +=
        (text.empty() ? "" : "\n") + option.text + " has no effect: " + std::string(rule->advice);
  }
  if (!text.empty()) throw InvalidArgument(text);
}

}  // namespace strata::launcher
