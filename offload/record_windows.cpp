#include "offload/record_windows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/graph/transfer_node.h"

namespace strata::offload {

using runtime::kNoValue;
using runtime::Role;
using runtime::Tier;
using runtime::Value;
using runtime::ValueId;

RecordWindows::RecordWindows(runtime::Graph& graph, const RecordsAhead& ahead)
    : graph_(graph), ahead_(ahead) {
  if (ahead.use)
    for (const ReadAhead& record : ahead.records) unused_[record.name] = &record;
}

ValueId RecordWindows::take(const std::string& name) {
  const auto unused = unused_.find(name);
  if (unused == unused_.end()) return kNoValue;
  const ValueId window = window_of(*unused->second);
  unused_.erase(unused);
  return window;
}

ValueId RecordWindows::window_of(const ReadAhead& record) {
  const auto [at, fresh] = windows_.try_emplace(record.name, kNoValue);
  if (!fresh) return at->second;
  Value window;
  window.name = record.name + " (ahead)";
  window.type = record.type;
  window.tier = Tier::pinned;
  window.storage = runtime::Storage::handed_on;
  window.role = Role::optimizer;
  window.place_bytes = record.place_bytes;
  window.distribution = record.distribution;
  return at->second = graph_.add_value(std::move(window));
}

ValueId RecordWindows::add_home(const ReadAhead& record) {
  Value home;
  home.name = record.name;
  home.type = record.type;
  home.tier = Tier::disk;
  home.storage = runtime::Storage::persistent;
  home.role = Role::optimizer;
  home.distribution = record.distribution;
  return graph_.add_value(std::move(home));
}

void RecordWindows::read_for_next() {
  std::vector<std::int32_t> latest(graph_.values.size(), 0);  // index: root
  std::map<std::string, ValueId> homes;
  for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
    const Value& value = graph_.values[static_cast<std::size_t>(id)];
    const auto root = static_cast<std::size_t>(graph_.root_of(id));
    latest[root] = std::max(latest[root], value.version);
    if (value.root == kNoValue && value.tier == Tier::disk) homes[value.name] = id;
  }
  const auto latest_of = [&](ValueId root) {
    const auto at = static_cast<std::size_t>(root);
    return graph_.at_version(root, at < latest.size() ? latest[at] : 0);
  };
  for (const ReadAhead& record : ahead_.records) {
    const auto known = homes.find(record.name);
    const ValueId home = known == homes.end() ? add_home(record) : known->second;
    graph_.nodes.push_back(runtime::transfer_node(
        graph_, latest_of(home), graph_.next_version(latest_of(window_of(record))),
        runtime::TransferPurpose::fetch, static_cast<int>(graph_.blocks.size()) - 1,
        runtime::Pass::update, "read ahead " + record.name));
  }
}

}  // namespace strata::offload
