#include "offload/offload_activations.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/node_inserter.h"
#include "runtime/transfer_node.h"
#include "runtime/version_map.h"

namespace strata::offload {
namespace {

using runtime::Graph;
using runtime::kNoValue;
using runtime::Moves;
using runtime::Node;
using runtime::Pass;
using runtime::Tier;
using runtime::Value;
using runtime::ValueId;
using runtime::VersionMap;

/// What happens to one root.
struct Life {
  std::vector<ValueId> written;  ///< in the forward pass, in order
  int last_forward = -1;         ///< nodes
  int first_backward = -1;
  std::vector<int> readers;  ///< in the backward pass
  int block = -1;            ///< that makes it
  bool stays = false;
};

class ActivationOffloader {
 public:
  ActivationOffloader(Graph& graph, const runtime::ActivationOffload& plan)
      : graph_(graph), plan_(plan) {}

  void run() {
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) follow(i);
    for (const auto& [root, life] : lives_)
      if (is_chosen(root, life)) move(root, life);
    inserter_.apply(graph_);
  }

 private:
  [[nodiscard]] Value& value(ValueId id) { return graph_.values[static_cast<std::size_t>(id)]; }

  void follow(int i) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(i)];
    const auto touch = [&](ValueId id, bool write) {
      const ValueId root = graph_.root_of(id);
      if (value(root).storage != runtime::Storage::transient ||
          value(root).role != runtime::Role::activation)
        return;
      Life& life = lives_[root];
      if (node.pass == Pass::forward) {
        life.last_forward = i;
        if (write) life.written.push_back(id);
        if (life.block < 0) life.block = node.block;
        return;
      }
      if (write) life.stays = true;
      if (life.first_backward < 0) life.first_backward = i;
      life.readers.push_back(i);
    };
    for (ValueId in : node.inputs) touch(in, false);
    for (ValueId out : node.outputs) touch(out, true);
    if (node.predicate != kNoValue) touch(node.predicate, false);
  }

  [[nodiscard]] bool is_chosen(ValueId root, const Life& life) {
    if (life.stays || life.written.empty() || life.readers.empty()) return false;
    if (life.block < plan_.first_block || life.block > plan_.last_block) return false;
    return graph_.bytes(root) >= plan_.least_bytes && value(root).type.contiguous() &&
           is_one_version(root, life);
  }

  /// Whether the forward pass leaves the whole root in the version that its last writer names.
  [[nodiscard]] bool is_one_version(ValueId root, const Life& life) {
    std::int64_t row_bytes = graph_.bytes(root);
    for (ValueId id : life.written)
      if (const auto rows = runtime::rows_of(graph_.type(id), 0); !rows.contiguous())
        row_bytes = rows.stride;
    VersionMap versions(row_bytes, {});
    for (ValueId id : life.written)
      versions.for_each(
          runtime::rows_of(graph_.type(id), value(id).offset_bytes),
          [&](VersionMap::Content& content, std::int64_t) { content.version = value(id).version; });
    bool one = true;
    versions.for_each({0, graph_.bytes(root), 1, graph_.bytes(root)},
                      [&](const VersionMap::Content& content, std::int64_t) {
                        one = one && content.version == version_of(life);
                      });
    return one;
  }

  [[nodiscard]] std::int32_t version_of(const Life& life) {
    return value(life.written.back()).version;
  }

  void move(ValueId root, const Life& life) {
    const ValueId from = graph_.at_version(root, version_of(life));
    const auto twin = [&](const char* where, Tier tier) {
      Value copy = value(root);
      copy.name += where;
      copy.tier = tier;
      copy.version = version_of(life);
      return graph_.add_value(std::move(copy));
    };
    const std::string name = value(root).name;
    const auto last = graph_.nodes[static_cast<std::size_t>(life.last_forward)];
    const auto first = graph_.nodes[static_cast<std::size_t>(life.first_backward)];
    const auto out = [&](ValueId source, ValueId target, const char* verb) {
      inserter_.after(life.last_forward,
                      runtime::transfer_node(graph_, source, target, Moves::out, last.block,
                                             last.pass, verb + name));
    };
    const auto in = [&](ValueId source, ValueId target, const char* verb) {
      inserter_.before(life.first_backward,
                       runtime::transfer_node(graph_, source, target, Moves::in, first.block,
                                              first.pass, verb + name));
    };
    ValueId held = twin(" (host)", Tier::pinned);
    out(from, held, "download ");
    if (plan_.tier == Tier::disk) {
      const ValueId on_disk = twin(" (disk)", Tier::disk);
      out(held, on_disk, "write ");
      held = twin(" (window)", Tier::pinned);
      in(on_disk, held, "read ");
    }
    const ValueId back = twin(" (back)", Tier::device);
    in(held, back, "upload ");
    for (int reader : life.readers) {
      Node& node = graph_.nodes[static_cast<std::size_t>(reader)];
      const auto redirect = [&](ValueId& id) {
        if (id == kNoValue || graph_.root_of(id) != root) return;
        const Value view = value(id);
        id = graph_.add_view(back, view.offset_bytes, view.type, view.name);
        value(id).version = view.version;
      };
      for (ValueId& id : node.inputs) redirect(id);
      redirect(node.predicate);
    }
  }

  Graph& graph_;
  const runtime::ActivationOffload& plan_;
  std::map<ValueId, Life> lives_;  // of roots
  runtime::NodeInserter inserter_;
};

}  // namespace

void offload_activations(runtime::Graph& graph, const runtime::ActivationOffload& plan) {
  if (plan.tier != Tier::device) ActivationOffloader(graph, plan).run();
}

}  // namespace strata::offload
