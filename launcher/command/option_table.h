// All options that mlaunch knows, its own and those of other launchers, with what happens to them.
#pragma once

#include <span>
#include <string_view>

namespace strata::launcher {

enum class OptionUse {
  help,
  version,
  ranks,
  all_ranks,     ///< of all hosts
  device_count,  ///< number of ranks, and of GPUs that they see
  launcher,
  launcher_arguments,
  no_prefix,
  grace,
  max_restarts,
  hang_timeout,
  log_directory,
  master_port,
  master_address,
  network_interface,
  node_count,
  node_rank,
  elastic,
  rejoin,
  agent,
  rendezvous,
  rendezvous_settings,
  this_host,
  requeue,
  run_secret,
  host_list,
  hostfile,
  web,
  autotuning,
  include,
  exclude,
  no_effect,  ///< accepted; a note says `advice`
  refused,    ///< refused; `advice` says what to do instead
};

struct OptionEntry {
  std::string_view name;  ///< includes leading hyphens; hyphens between words
  OptionUse use;
  bool takes_value;
  std::string_view advice = {};
};

std::span<const OptionEntry> option_table();

/// Finds an option as typed ("--num_gpus", without "=value"); nullptr: unknown.
const OptionEntry* find_option(std::string_view typed);

}  // namespace strata::launcher
