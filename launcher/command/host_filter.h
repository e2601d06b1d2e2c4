// DeepSpeed's --include and --exclude: which listed hosts take part, and which of their slots.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/command/host_list.h"

namespace strata::launcher {

struct HostFilter {
  struct Entry {
    std::string host;
    std::vector<std::string> slots = {};  ///< numbers; none: all of the host
  };
  std::string typed;  ///< "--include a:0,2@b"; begins messages
  bool excludes = false;
  std::vector<Entry> entries = {};
};

/// Parses "a:0,2@b". Throws InvalidArgument for what is no name, no number, or named twice.
HostFilter parse_host_filter(const std::string& typed, std::string_view text, bool excludes);

/// Returns the hosts that are left, in the order of the list, with numbers of slots where some are
/// chosen: those are the GPUs that ranks see. `usual_slots`: of hosts whose list does not say any.
/// Throws InvalidArgument for hosts and slots that are not there, and if no host is left.
std::vector<ListedHost> filter_hosts(const HostFilter& filter, const std::vector<ListedHost>& hosts,
                                     int usual_slots);

}  // namespace strata::launcher
