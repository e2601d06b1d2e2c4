// Tests of what moves, and when, if a persistent value is used on both sides.
#include "offload/place_transfers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace strata::offload {
namespace {

using runtime::Graph;
using runtime::Node;
using runtime::Queue;
using runtime::Tier;
using runtime::ValueId;

using Words = std::vector<std::string>;

/// Builds nodes of one block that use "state", which lives on the disk.
class Uses {
 public:
  Uses() {
    runtime::Value state;
    state.name = "state";
    state.type = {DType::f32, kernels::Shape{1024}};
    state.tier = Tier::disk;
    state.storage = runtime::Storage::persistent;
    state.role = runtime::Role::optimizer;
    state_ = graph_.add_value(state);
    graph_.add_block("block");
  }
  Uses& reads(Queue queue) { return add(queue, false); }
  Uses& writes(Queue queue) { return add(queue, true); }

  /// Returns the labels of nodes, in order, after placement.
  Words placed() {
    place_transfers(graph_);
    Words labels;
    for (const Node& node : graph_.nodes) labels.push_back(node.label);
    return labels;
  }

 private:
  Uses& add(Queue queue, bool write) {
    Node node;
    node.operation = &kernels::find_operation("add");
    node.queue = queue;
    if (write) state_ = graph_.next_version(state_);
    (write ? node.outputs : node.inputs).push_back(state_);
    node.label =
        std::string(queue == Queue::host ? "host " : "device ") + (write ? "makes" : "uses");
    graph_.nodes.push_back(std::move(node));
    return *this;
  }

  Graph graph_;
  ValueId state_;
};

TEST(PlaceTransfers, ACopyServesNeighbours) {
  EXPECT_EQ(Uses().reads(Queue::compute).reads(Queue::compute).placed(),
            (Words{"read state", "upload state", "device uses", "device uses"}));
}

TEST(PlaceTransfers, ACopyThatIsOutOfDateIsBroughtAgain) {
  EXPECT_EQ(Uses().reads(Queue::compute).writes(Queue::host).reads(Queue::compute).placed(),
            (Words{"read state", "upload state", "device uses", "host makes", "write state",
                   "read state", "upload state", "device uses"}));
}

TEST(PlaceTransfers, WhatWasWrittenGoesHomeBeforeTheOtherSideReadsIt) {
  EXPECT_EQ(Uses().writes(Queue::host).reads(Queue::compute).reads(Queue::host).placed(),
            (Words{"host makes", "write state", "read state", "upload state", "device uses",
                   "read state", "host uses"}));
}

}  // namespace
}  // namespace strata::offload
