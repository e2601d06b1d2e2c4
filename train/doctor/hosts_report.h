// What `doctor --hosts` found on the hosts of a run and between them, and what is wrong with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace strata::train {

/// One host, as its rank sees it.
struct HostFacts {
  std::string name;
  std::string address;    ///< at which the others reach it
  std::string interface;  ///< that has the address; may be empty
  int port = 0;           ///< at which its rank listens
  std::string no_port;    ///< why it does not; empty: it does
  std::string programs;   ///< folder of the programs
  /// Hashes of programs and modules by file name, as hashes_of_installed() has them.
  std::map<std::string, std::string> build;
  std::string processor;
  int cores = 0;
  std::int64_t available_bytes = 0;
  std::int64_t locked_bytes = -1;         ///< limit of locked memory; -1: none
  std::int64_t shared_memory_bytes = -1;  ///< free in /dev/shm; -1: there is none
  std::vector<std::string> gpus = {};     ///< each with its driver
};

/// What a host's rank has tried with the others.
struct HostLinks {
  struct Unreached {
    int host = 0;
    std::string why;
  };
  struct Stream {
    int host = 0;
    double bytes_per_second = 0;
  };
  std::vector<Unreached> unreached = {};
  int farthest = -1;              ///< the host with the longest round trip; -1: none was reached
  double round_trip_seconds = 0;  ///< to that one
  std::vector<Stream> streams = {};
  double clock_ahead_seconds = 0;  ///< of host 0's wall clock
  std::string no_file;             ///< why host 0's file in the output folder is not seen
  std::string no_lock;             ///< why host 0's lock there does not count
};

std::string to_json(const HostFacts& facts);
std::string to_json(const HostLinks& links);
/// Throw DataError for what to_json does not write.
HostFacts read_host_facts(const std::string& json);
HostLinks read_host_links(const std::string& json);

struct HostsReport {
  std::vector<HostFacts> hosts;
  std::vector<HostLinks> links;  ///< as many
  std::string output;            ///< the output folder; empty: it was not named
};

/// A line of the report.
struct Finding {
  enum class Level : std::uint8_t { ok, note, bad };
  Level level = Level::ok;
  std::string what;  ///< a word: "ports"
  std::string text;  ///< with what to change, unless it is ok
};

/// Says of each thing how it is; what is bad keeps a run from starting, or ends it.
std::vector<Finding> judge(const HostsReport& report);
/// The hosts as a table, and the findings.
std::string to_text(const HostsReport& report);

}  // namespace strata::train
