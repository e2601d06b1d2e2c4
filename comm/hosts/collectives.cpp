// The collectives: each sends to other hosts what they need, then reads within its host.
#include <algorithm>
#include <cstring>
#include <functional>

#include "comm/copy_bytes.h"
#include "comm/hosts/hosts_communicator.h"
#include "comm/workspace.h"
#include "core/check.h"
#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {
namespace {

/// Adds `count` wrapping int64 to those at `sum`.
void add_integers(const std::byte* from, std::int64_t count, std::byte* sum) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t left, right;  // unsigned, so that the sum wraps
    std::memcpy(&left, sum + i * 8, 8);
    std::memcpy(&right, from + i * 8, 8);
    left += right;
    std::memcpy(sum + i * 8, &left, 8);
  }
}

/// Returns the elements of the message that begins at element `begin` of `count`.
std::int64_t chunk_at(std::int64_t begin, std::int64_t count) {
  return std::min(kSumElementsPerMessage, count - begin);
}

}  // namespace

std::int64_t HostsCommunicator::part_number(const PartialSum& sum, std::int64_t begin) const {
  return begin * layout_.world + sum.subtree.first;
}

void HostsCommunicator::all_gather(const Collective& collective, const std::byte* input,
                                   std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const auto place = [&](int rank) { return partition.begin(rank) * size; };
  const auto bytes = [&](int rank) { return partition.count(rank) * size; };
  copy_bytes(output + place(rank_), input, bytes(rank_));
  const auto outputs = meet_all(collective, output, partition.total() * size);
  for (const int peer : served_) receive_data(peer, output + place(peer), bytes(peer));
  for (int host = 0; host < layout_.hosts(); ++host)
    if (host != host_)
      send_data(layout_.counterpart(rank_, host), output + place(rank_), bytes(rank_));
  const int first = layout_.first(host_);
  for (int step = 1; step < locals_; ++step) {
    const int peer = (local_ + step) % locals_;
    copy_bytes(output + place(first + peer), outputs[peer] + place(first + peer),
               bytes(first + peer));
  }
  finish_host();
  for (int peer = 0; peer < layout_.world; ++peer) {
    if (layout_.host_of(peer) == host_) continue;
    const int holder = layout_.counterpart(peer, host_);
    if (holder != rank_)
      copy_bytes(output + place(peer), outputs[holder - first] + place(peer), bytes(peer));
  }
  group_.barrier();
}

void HostsCommunicator::receive_sums(const Collective& collective, std::span<std::byte>& free) {
  const std::int64_t count = collective.partition.count(rank_);
  for (std::size_t i = 0; i < incoming_.size(); ++i) {
    const Subtree& subtree = incoming_[i].subtree;
    const DType type = sum_type(subtree, collective.wire_type);
    received_[i] = take_piece(free, count * size_of(type));
    const std::byte*& part = parts_[static_cast<std::size_t>(subtree.first)];
    part = received_[i];
    sums_.push_back({subtree, {&part, 1}, type, type});
  }
  for (std::int64_t begin = 0; begin < count; begin += kSumElementsPerMessage)
    for (std::size_t i = 0; i < incoming_.size(); ++i) {
      const PartialSum& sum = incoming_[i];
      const std::int64_t size = size_of(sum_type(sum.subtree, collective.wire_type));
      receive_data(sum.from, received_[i] + begin * size, chunk_at(begin, count) * size,
                   part_number(sum, begin));
    }
}

void HostsCommunicator::send_sums(const Collective& collective,
                                  std::span<const std::byte* const> operands,
                                  std::span<std::byte>& free) {
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < outgoing_.size(); ++i) {
    const PartialSum& sum = outgoing_[i];
    const DType type = sum_type(sum.subtree, collective.wire_type);
    const std::int64_t count = collective.partition.count(sum.to);
    const bool as_it_is = sum.subtree.leaves == 1 && collective.input_type == type;
    made_[i] = as_it_is ? nullptr : take_piece(free, count * size_of(type));
    largest = std::max(largest, count);
  }
  for (std::int64_t begin = 0; begin < largest; begin += kSumElementsPerMessage)
    for (std::size_t i = 0; i < outgoing_.size(); ++i)
      if (begin < collective.partition.count(outgoing_[i].to))
        send_chunk(collective, operands, outgoing_[i], begin, made_[i]);
}

void HostsCommunicator::send_chunk(const Collective& collective,
                                   std::span<const std::byte* const> operands,
                                   const PartialSum& sum, std::int64_t begin, std::byte* made) {
  const Partition& partition = collective.partition;
  const std::int64_t offset = (partition.begin(sum.to) + begin) * size_of(collective.input_type);
  const auto leaves = operands.subspan(
      static_cast<std::size_t>(sum.subtree.first - layout_.first(host_)), sum.subtree.leaves);
  const DType type = sum_type(sum.subtree, collective.wire_type);
  const std::int64_t count = chunk_at(begin, partition.count(sum.to));
  const std::byte* sent = leaves[0] + offset;
  if (made != nullptr) {
    std::byte* const chunk = made + begin * size_of(type);
    sent = chunk;
    if (sum.subtree.leaves == 1) {
      kernels::convert_to_wire(nullptr, collective.input_type, leaves[0] + offset, type, count,
                               chunk);
    } else {
      std::array<const std::byte*, kernels::kMaxContributions> at;
      for (std::size_t i = 0; i < leaves.size(); ++i) at[i] = leaves[i] + offset;
      kernels::ordered_sum(nullptr, {at.data(), leaves.size()}, collective.input_type,
                           collective.wire_type, count, 1.0f, reinterpret_cast<float*>(chunk));
    }
  }
  send_data(sum.to, sent, count * size_of(type), part_number(sum, begin));
}

void HostsCommunicator::add_own_sums(const Collective& collective,
                                     std::span<const std::byte* const> operands) {
  const Partition& partition = collective.partition;
  const std::int64_t offset =
      partition.total() > 0 ? partition.begin(rank_) * size_of(collective.input_type) : 0;
  const auto first = static_cast<std::size_t>(layout_.first(host_));
  for (std::size_t peer = 0; peer < operands.size(); ++peer)
    parts_[first + peer] = operands[peer] + offset;
  for (const Subtree& own : own_subtrees_)
    sums_.push_back({own,
                     {parts_.data() + own.first, static_cast<std::size_t>(own.leaves)},
                     collective.input_type,
                     collective.wire_type});
  std::ranges::sort(sums_, {}, [](const SumPart& sum) { return sum.subtree.first; });
}

void HostsCommunicator::reduce_scatter(const Collective& collective, const std::byte* input,
                                       float* output, std::span<std::byte> workspace) {
  const auto operands =
      meet_all(collective, input, collective.partition.total() * size_of(collective.input_type));
  std::span<std::byte> free = workspace;
  sums_.clear();
  receive_sums(collective, free);
  send_sums(collective, operands, free);
  add_own_sums(collective, operands);
  const std::int64_t count = collective.partition.count(rank_);
  for (std::int64_t begin = 0; begin < count; begin += kSumElementsPerMessage) {
    finish(incoming_.size());
    sum_tree(sums_, layout_.world, begin, chunk_at(begin, count), collective.scale, output + begin);
  }
  finish();
  group_.barrier();
}

void HostsCommunicator::all_reduce(const Collective& collective, std::byte* data,
                                   std::span<std::byte> workspace) {
  const std::int64_t count = collective.partition.total();
  const std::int64_t bytes = count * size_of(DType::i64);
  const auto operands = meet_all(collective, data, bytes);
  if (leads()) {
    const std::int64_t needs = bytes * layout_.hosts();
    STRATA_CHECK(static_cast<std::int64_t>(workspace.size()) >= needs, group_.what(),
                 "workspace of", workspace.size(), "bytes; needs", needs);
    const auto sum_of = [&](int host) { return workspace.data() + host * bytes; };
    copy_bytes(sum_of(host_), data, bytes);
    for (int peer = 1; peer < locals_; ++peer) add_integers(operands[peer], count, sum_of(host_));
    for (int host = 0; host < layout_.hosts(); ++host) {
      if (host == host_) continue;
      receive_data(layout_.first(host), sum_of(host), bytes);
      send_data(layout_.first(host), sum_of(host_), bytes);
    }
    finish();
    // The others of this host only wait meanwhile: the leader's operand can take the sum.
    copy_bytes(data, sum_of(0), bytes);
    for (int host = 1; host < layout_.hosts(); ++host) add_integers(sum_of(host), count, data);
  }
  finish_host();
  if (!leads()) copy_bytes(data, operands[0], bytes);
  group_.barrier();
}

void HostsCommunicator::broadcast(const Collective& collective, std::byte* data) {
  const std::int64_t bytes = operand_bytes(collective, rank_).input;
  const auto operands = meet_all(collective, data, bytes);
  if (leads() && host_ > 0) receive_data(0, data, bytes);
  for (int host = 1; host < layout_.hosts() && rank_ == 0; ++host)
    send_data(layout_.first(host), data, bytes);
  finish_host();
  if (!leads()) copy_bytes(data, operands[0], bytes);
  group_.barrier();
}

void HostsCommunicator::all_to_all(const Collective& collective, const std::byte* input,
                                   std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const std::int64_t piece = partition.count(rank_) * size;
  const auto operands = meet_all(collective, input, partition.total() * size);
  for (int peer = 0; peer < layout_.world; ++peer)
    if (layout_.host_of(peer) != host_) receive_data(peer, output + peer * piece, piece);
  for (int step = 1; step < layout_.world; ++step) {
    const int peer = (rank_ + step) % layout_.world;
    if (layout_.host_of(peer) != host_)
      send_data(peer, input + partition.begin(peer) * size, partition.count(peer) * size);
  }
  const int first = layout_.first(host_);
  for (int step = 0; step < locals_ && piece > 0; ++step) {
    const int peer = (local_ + step) % locals_;
    copy_bytes(output + (first + peer) * piece, operands[peer] + partition.begin(rank_) * size,
               piece);
  }
  finish();
  group_.barrier();
}

void HostsCommunicator::send(const Collective& collective, const std::byte* input) {
  const int peer = collective.peer;
  const std::int64_t bytes = operand_bytes(collective, rank_).input;
  if (layout_.host_of(peer) == host_)
    return group_.send(collective, peer - layout_.first(host_), input, bytes);
  static_cast<void>(group_.arenas().locate(input, bytes, group_.what(), "input"));
  const std::uint64_t number = ++sent_to_[static_cast<std::size_t>(peer)];
  header_ = header_of(collective);
  send_bytes(Lane::operands, peer, tag_of(Message::pair_header, number, 0), &header_,
             sizeof header_);
  if (bytes > 0)
    send_bytes(Lane::operands, peer, tag_of(Message::pair_data, number, header_.fingerprint), input,
               bytes);
  finish();
}

void HostsCommunicator::receive(const Collective& collective, std::byte* output) {
  const int peer = collective.peer;
  const std::int64_t bytes = operand_bytes(collective, rank_).output;
  if (layout_.host_of(peer) == host_)
    return group_.receive(collective, peer - layout_.first(host_), output, bytes);
  const std::uint64_t number = ++received_from_[static_cast<std::size_t>(peer)];
  header_ = header_of(collective);
  Header& theirs = headers_[static_cast<std::size_t>(layout_.host_of(peer))];
  receive_bytes(Lane::operands, peer, tag_of(Message::pair_header, number, 0), &theirs,
                sizeof theirs);
  finish();
  if (theirs.fingerprint != header_.fingerprint) report_difference(peer, theirs, rank_, header_);
  if (bytes > 0)
    receive_bytes(Lane::operands, peer, tag_of(Message::pair_data, number, header_.fingerprint),
                  output, bytes);
  finish();
}

void HostsCommunicator::meet(const Collective& collective) {
  meet_all(collective, nullptr, 0);
  finish();
  group_.barrier();  // the leader has heard of the other hosts
}

}  // namespace strata::comm
