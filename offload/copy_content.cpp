#include "offload/copy_content.h"

#include <algorithm>
#include <utility>

namespace strata::offload {

using runtime::ByteRange;
using runtime::kNoValue;
using runtime::ValueId;

namespace {

void merge_neighbours(std::vector<VersionedRange>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const VersionedRange& a, const VersionedRange& b) {
    return a.bytes.begin < b.bytes.begin;
  });
  std::vector<VersionedRange> merged;
  for (const VersionedRange& piece : pieces) {
    if (!merged.empty() && merged.back().bytes.end == piece.bytes.begin &&
        merged.back().version == piece.version && merged.back().conditional == piece.conditional)
      merged.back().bytes.end = piece.bytes.end;
    else
      merged.push_back(piece);
  }
  pieces = std::move(merged);
}

}  // namespace

void CopyContent::read(const ByteRange& range, bool all, std::int32_t version, ValueId condition) {
  for (const ByteRange& part : missing(all ? bytes_ : range))
    brought_.push_back({part, version, false});
  // A reader without this predicate needs the content from before a conditional write, too.
  for (VersionedRange& piece : written_)
    if (piece.conditional && piece.bytes.overlaps(range) && condition != condition_) {
      piece.conditional = false;
      brought_.push_back({piece.bytes, version_, false});
    }
}

void CopyContent::write(const ByteRange& range, std::int32_t version, ValueId condition) {
  bool had_content = missing(range).empty();
  std::vector<VersionedRange> kept;
  for (const VersionedRange& piece : written_) {
    if (!piece.bytes.overlaps(range)) {
      kept.push_back(piece);
      continue;
    }
    if (piece.conditional) had_content = false;
    if (piece.bytes.begin < range.begin)
      kept.push_back({{piece.bytes.begin, range.begin}, piece.version, piece.conditional});
    if (range.end < piece.bytes.end)
      kept.push_back({{range.end, piece.bytes.end}, piece.version, piece.conditional});
  }
  const bool conditional = condition != kNoValue && !had_content;
  if (conditional) condition_ = condition;
  kept.push_back({range, version, conditional});
  written_ = std::move(kept);
}

void CopyContent::bring_all() {
  brought_ = {{bytes_, version_, false}};
  for (VersionedRange& piece : written_) piece.conditional = false;
}

void CopyContent::merge() {
  merge_neighbours(brought_);
  merge_neighbours(written_);
}

bool CopyContent::is_written_whole() const {
  return written_.size() == 1 && written_[0].bytes.begin == bytes_.begin &&
         written_[0].bytes.end == bytes_.end;
}

bool CopyContent::is_written_conditionally() const {
  return std::ranges::any_of(written_,
                             [](const VersionedRange& piece) { return piece.conditional; });
}

std::vector<ByteRange> CopyContent::missing(const ByteRange& range) const {
  std::vector<ByteRange> left{range};
  for (const std::vector<VersionedRange>* held : {&brought_, &written_})
    for (const VersionedRange& piece : *held) {
      std::vector<ByteRange> rest;
      for (const ByteRange& part : left) {
        if (!part.overlaps(piece.bytes)) {
          rest.push_back(part);
          continue;
        }
        if (part.begin < piece.bytes.begin) rest.push_back({part.begin, piece.bytes.begin});
        if (piece.bytes.end < part.end) rest.push_back({piece.bytes.end, part.end});
      }
      left = std::move(rest);
    }
  return left;
}

}  // namespace strata::offload
