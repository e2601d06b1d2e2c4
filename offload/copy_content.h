// Tracks what a copy of some bytes of a root holds while nodes read and write it: which parts must
// be brought from home first, and which must be taken home afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/graph.h"

namespace strata::offload {

/// Bytes of a root in one version.
struct VersionedRange {
  runtime::ByteRange bytes;
  std::int32_t version;
  bool conditional;  ///< written under a predicate, without content before
};

class CopyContent {
 public:
  /// Begins a copy of `bytes` of a root that has version `version` before the first use.
  CopyContent(const runtime::ByteRange& bytes, std::int32_t version)
      : bytes_(bytes), version_(version) {}

  /// Notes that a node reads `range` in `version`; with `all`, the rest of the copy is brought
  /// along. `condition` is the node's predicate or kNoValue.
  void read(const runtime::ByteRange& range, bool all, std::int32_t version,
            runtime::ValueId condition);
  /// Notes that a node writes `version` of `range`, under its predicate if it has one.
  void write(const runtime::ByteRange& range, std::int32_t version, runtime::ValueId condition);

  /// Brings the whole copy and makes all writes unconditional, for homes that move only as a whole.
  void bring_all();
  /// Merges neighbouring pieces of one version.
  void merge();

  [[nodiscard]] const runtime::ByteRange& bytes() const { return bytes_; }
  [[nodiscard]] std::int32_t version() const { return version_; }
  /// Ranges that are read before they are written here; disjoint.
  [[nodiscard]] const std::vector<VersionedRange>& brought() const { return brought_; }
  /// Ranges that are written here; disjoint.
  [[nodiscard]] const std::vector<VersionedRange>& written() const { return written_; }
  /// Predicate of the conditional pieces.
  [[nodiscard]] runtime::ValueId condition() const { return condition_; }
  /// True if one written piece covers the whole copy.
  [[nodiscard]] bool is_written_whole() const;
  [[nodiscard]] bool is_written_conditionally() const;

 private:
  /// Returns the parts of `range` that the copy does not hold yet.
  [[nodiscard]] std::vector<runtime::ByteRange> missing(const runtime::ByteRange& range) const;

  runtime::ByteRange bytes_;
  std::int32_t version_;
  std::vector<VersionedRange> brought_;
  std::vector<VersionedRange> written_;
  runtime::ValueId condition_ = runtime::kNoValue;
};

}  // namespace strata::offload
