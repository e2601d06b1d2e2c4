// The hosts that tests play, for backends over several.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "comm/host_layout.h"
#include "comm/testing/conformance.h"

namespace strata::comm {

struct NamedLayout {
  std::string name;
  HostLayout layout;
};

inline std::vector<NamedLayout> played_layouts() {
  return {{"2x1", {{0, 1}, 2}},
          {"2x2", {{0, 2}, 4}},
          {"3x2", {{0, 2, 4}, 6}},
          {"2and3", {{0, 2}, 5}},
          {"3and1", {{0, 3}, 4}}};
}

/// Returns a backend for each layout; `run` runs a body on all ranks of one. `model` has the rest
/// of what is to be said of all.
inline std::vector<TestedBackend> backends_on_hosts(
    const TestedBackend& model,
    const std::function<void(const HostLayout& layout, const RankBody& body)>& run) {
  std::vector<TestedBackend> backends;
  for (const NamedLayout& named : played_layouts()) {
    TestedBackend backend = model;
    backend.name += named.name + "world";
    backend.world = named.layout.world;
    backend.run_ranks = [run, layout = named.layout](int, const RankBody& body) {
      run(layout, body);
    };
    backends.push_back(std::move(backend));
  }
  return backends;
}

}  // namespace strata::comm
