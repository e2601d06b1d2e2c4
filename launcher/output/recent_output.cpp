#include "launcher/output/recent_output.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "launcher/output/terminal_text.h"

namespace strata::launcher {
namespace {

/// Returns the number of the first line to read of `end` lines.
std::uint64_t begin_of(const AskLogs& asked, std::uint64_t end) {
  const std::uint64_t number = std::min(asked.number, end);
  return asked.from_end ? end - number : number;
}

}  // namespace

void RecentOutput::feed(int rank, OutputKind kind, std::string_view bytes) {
  std::string& partial = ranks_[rank].partial[static_cast<std::size_t>(kind)];
  for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos;) {
    partial += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(partial, {});
    add({rank, attempt_, kind, std::string(visible_part(line))});
  }
  partial += bytes;
  if (partial.size() <= kMaxLineBytes) return;
  // What a carriage return follows is overwritten on a terminal.
  if (const std::size_t last = partial.rfind('\r'); last != std::string::npos)
    partial.erase(0, last);
  if (partial.size() > kMaxLineBytes) finish_line(rank, kind);
}

void RecentOutput::finish_line(int rank, OutputKind kind) {
  const std::string line =
      std::exchange(ranks_[rank].partial[static_cast<std::size_t>(kind)], std::string());
  if (!line.empty()) add({rank, attempt_, kind, std::string(visible_part(line))});
}

void RecentOutput::say(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    add({OutputLine::kMlaunch, attempt_, OutputKind::standard_error,
         std::string(text.substr(0, end))});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void RecentOutput::add(OutputLine line) {
  OfRank& rank = ranks_[line.rank];
  rank.bytes += line.text.size() + kLineOverhead;
  rank.lines.push_back({count_++, std::move(line)});
  while (rank.bytes > most_bytes_ && rank.lines.size() > 1) {
    rank.bytes -= rank.lines.front().line.text.size() + kLineOverhead;
    rank.lines.pop_front();
    ++rank.dropped;
  }
}

RecentOutput::Piece RecentOutput::read(const AskLogs& asked, std::size_t most_bytes) const {
  if (!asked.rank) return read_all(asked, most_bytes);
  const auto found = ranks_.find(*asked.rank);
  return found == ranks_.end() ? Piece{} : read_rank(asked, found->second, most_bytes);
}

RecentOutput::Piece RecentOutput::read_rank(const AskLogs& asked, const OfRank& rank,
                                            std::size_t most_bytes) {
  const std::uint64_t end = rank.dropped + rank.lines.size();
  const std::uint64_t begin = begin_of(asked, end);
  Piece piece{.next = std::max(begin, rank.dropped), .end = end};
  piece.dropped = piece.next - begin;
  for (std::size_t bytes = 0; piece.next < end && bytes < most_bytes; ++piece.next) {
    piece.lines.push_back(rank.lines[piece.next - rank.dropped].line);
    bytes += piece.lines.back().text.size() + kLineOverhead;
  }
  return piece;
}

std::vector<OutputLine> RecentOutput::merge(std::vector<Head>& heads, std::size_t most_bytes) {
  const auto later = [](const Head& a, const Head& b) { return a.first->number > b.first->number; };
  std::ranges::make_heap(heads, later);
  std::vector<OutputLine> lines;
  for (std::size_t bytes = 0; !heads.empty() && bytes < most_bytes;) {
    std::ranges::pop_heap(heads, later);
    Head& first = heads.back();
    lines.push_back(first.first->line);
    bytes += lines.back().text.size() + kLineOverhead;
    if (++first.first == first.second)
      heads.pop_back();
    else
      std::ranges::push_heap(heads, later);
  }
  return lines;
}

RecentOutput::Piece RecentOutput::read_all(const AskLogs& asked, std::size_t most_bytes) const {
  const std::uint64_t begin = begin_of(asked, count_);
  std::vector<Head> heads;
  for (const auto& [number, rank] : ranks_) {
    const auto first = std::ranges::lower_bound(rank.lines, begin, {}, &Kept::number);
    if (first != rank.lines.end()) heads.emplace_back(first, rank.lines.end());
  }
  Piece piece{.lines = merge(heads, most_bytes), .next = count_, .end = count_};
  if (!heads.empty()) piece.next = heads.front().first->number;
  piece.dropped = piece.next - begin - piece.lines.size();
  return piece;
}

std::vector<OutputLine> RecentOutput::last_of_each(std::size_t most_bytes) const {
  std::vector<Head> heads;
  for (const auto& [number, rank] : ranks_) {
    auto first = rank.lines.end();
    for (std::size_t bytes = 0; first != rank.lines.begin(); --first) {
      bytes += std::prev(first)->line.text.size() + kLineOverhead;
      if (bytes > most_bytes / ranks_.size()) break;
    }
    if (first != rank.lines.end()) heads.emplace_back(first, rank.lines.end());
  }
  return merge(heads, most_bytes);
}

}  // namespace strata::launcher
