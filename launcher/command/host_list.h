// The hosts of a run as users write them: -H a:2,b:2, and DeepSpeed's host files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::launcher {

struct ListedHost {
  std::string name;                       ///< as ssh takes it: "gpu-07", "user@10.0.0.7"
  int slots = 0;                          ///< ranks; 0: as many as --nproc-per-node says
  std::vector<std::string> devices = {};  ///< numbers of GPUs that ranks see; none: nobody says
  bool operator==(const ListedHost&) const = default;
};

/// Parses "a:2,user@b,c:4". `typed` begins messages: "-H a:0". Throws InvalidArgument that names
/// the wrong word: an empty name, one that ssh would take for an option, a number of slots that is
/// none, a host twice.
std::vector<ListedHost> parse_host_list(const std::string& typed, std::string_view text);

/// Parses lines of "NAME slots=N" (slots may be left out); '#' begins a comment. `source` names the
/// file. Throws InvalidArgument that names the line.
std::vector<ListedHost> parse_hostfile(std::string_view text, const std::string& source);

/// Reads a hostfile. Throws InvalidArgument if it cannot be read, or as above.
std::vector<ListedHost> read_hostfile(const std::string& path);

/// True for the name of this host, and for names that each host has for itself.
bool is_this_host(const std::string& name);

}  // namespace strata::launcher
