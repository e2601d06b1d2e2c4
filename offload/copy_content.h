// What a copy of some bytes of a root holds while nodes read and write it: which parts must be
// brought from home before, and which must be taken there afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/graph.h"

namespace strata::offload {

/// Bytes of a root that hold one version.
struct VersionedRange {
  runtime::ByteRange bytes;
  std::int32_t version;
  bool conditional;  ///< written under a predicate and nothing before
};

class CopyContent {
 public:
  /// A copy of `bytes` of a root that is at `version` before the first use.
  CopyContent(const runtime::ByteRange& bytes, std::int32_t version)
      : bytes_(bytes), version_(version) {}

  /// A node reads `range` in `version`; `all`: what it reads comes together with the rest of the
  /// copy. `condition` is the node's predicate or kNoValue.
  void read(const runtime::ByteRange& range, bool all, std::int32_t version,
            runtime::ValueId condition);
  /// A node writes `version` of `range`, under its predicate where it has one.
  void write(const runtime::ByteRange& range, std::int32_t version, runtime::ValueId condition);

  /// For homes that move only as a whole: all is brought, and all that is written certainly is.
  void bring_all();
  /// Neighbours in one version become one piece.
  void merge();

  [[nodiscard]] const runtime::ByteRange& bytes() const { return bytes_; }
  [[nodiscard]] std::int32_t version() const { return version_; }
  /// Read before it is written here; disjoint.
  [[nodiscard]] const std::vector<VersionedRange>& brought() const { return brought_; }
  /// Disjoint.
  [[nodiscard]] const std::vector<VersionedRange>& written() const { return written_; }
  /// Predicate of conditional pieces, as the writer knew it.
  [[nodiscard]] runtime::ValueId condition() const { return condition_; }
  /// Whether one piece that is written is all of the copy.
  [[nodiscard]] bool is_written_whole() const;
  [[nodiscard]] bool is_written_conditionally() const;

 private:
  /// What of `range` the copy does not hold yet.
  [[nodiscard]] std::vector<runtime::ByteRange> missing(const runtime::ByteRange& range) const;

  runtime::ByteRange bytes_;
  std::int32_t version_;
  std::vector<VersionedRange> brought_;
  std::vector<VersionedRange> written_;
  runtime::ValueId condition_ = runtime::kNoValue;
};

}  // namespace strata::offload
