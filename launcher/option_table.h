// Every option that mlaunch knows, its own and DeepSpeed's, with what happens to it.
#pragma once

#include <span>
#include <string_view>

namespace strata::launcher {

enum class OptionUse {
  help,
  version,
  ranks,
  device_count,  ///< ranks, and GPUs that they see
  launcher,
  launcher_arguments,
  no_prefix,
  grace,
  master_port,
  master_address,
  node_count,
  node_rank,  ///< of the one host: 0
  include,
  exclude,
  no_effect,      ///< accepted; `advice` is shown once
  several_hosts,  ///< refused: ranks on other hosts
  refused,        ///< refused; `advice` says what to do instead
};

struct OptionEntry {
  std::string_view name;  ///< with leading hyphens; words joined by hyphens
  OptionUse use;
  bool takes_value;
  std::string_view advice = {};
};

std::span<const OptionEntry> option_table();

/// Entry of an option as typed ("--num_gpus", without "=value"); nullptr: unknown.
const OptionEntry* find_option(std::string_view typed);

}  // namespace strata::launcher
