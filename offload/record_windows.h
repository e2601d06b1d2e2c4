// Windows in pinned memory for records on the disk that are read one Program before their update;
// windows pass from one Program to the next.
#pragma once

#include <map>
#include <string>

#include "offload/place_transfers.h"
#include "runtime/graph/graph.h"

namespace strata::offload {

/// Adds windows to a Graph. Both arguments must outlive it.
class RecordWindows {
 public:
  RecordWindows(runtime::Graph& graph, const RecordsAhead& ahead);

  /// Returns the window (a root) of a record that the Program before has filled, the first time
  /// that the record is asked for; else kNoValue.
  runtime::ValueId take(const std::string& name);
  /// Adds reads for the next Program, after all that this Graph does to the records so far.
  void read_for_next();

 private:
  runtime::ValueId window_of(const ReadAhead& record);
  runtime::ValueId add_home(const ReadAhead& record);

  runtime::Graph& graph_;
  const RecordsAhead& ahead_;
  std::map<std::string, const ReadAhead*> unused_;   // key: name; filled, not taken yet
  std::map<std::string, runtime::ValueId> windows_;  // key: name; in the Graph
};

}  // namespace strata::offload
