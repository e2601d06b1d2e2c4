// Records of the disk that are read one Program before their update: their windows in pinned
// memory, which pass from one Program to the next.
#pragma once

#include <map>
#include <string>

#include "offload/place_transfers.h"
#include "runtime/graph/graph.h"

namespace strata::offload {

/// Adds windows to a Graph. Graph and records outlive it.
class RecordWindows {
 public:
  RecordWindows(runtime::Graph& graph, const RecordsAhead& ahead);

  /// Returns, once per record, the window (a root) that the Program before has filled for it; else
  /// kNoValue.
  runtime::ValueId take(const std::string& name);
  /// Reads for the next Program, after all that this Graph does to the records by now.
  void read_for_next();

 private:
  runtime::ValueId window_of(const ReadAhead& record);
  runtime::ValueId add_home(const ReadAhead& record);

  runtime::Graph& graph_;
  const RecordsAhead& ahead_;
  std::map<std::string, const ReadAhead*> unused_;   // by name of the record
  std::map<std::string, runtime::ValueId> windows_;  // likewise, those that the Graph has
};

}  // namespace strata::offload
