#include "comm/hosts/hosts_communicator.h"

#include <fmt/core.h>

#include <utility>

#include "comm/first_cause.h"
#include "core/check.h"

namespace strata::comm {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 32);
}

}  // namespace

HostsCommunicator::HostsCommunicator(std::unique_ptr<PeerLink> peers,
                                     std::unique_ptr<HostLink> hosts, HostLayout layout, int rank)
    : rank_(rank),
      layout_((validate(layout), std::move(layout))),
      host_(layout_.host_of(rank)),
      local_(layout_.local(rank)),
      locals_(layout_.ranks(host_)),
      group_(std::move(peers), local_, locals_, *this, layout_.first(host_)),
      link_(std::move(hosts)),
      sent_to_(static_cast<std::size_t>(layout_.world)),
      received_from_(static_cast<std::size_t>(layout_.world)),
      headers_(static_cast<std::size_t>(layout_.hosts())),
      served_(layout_.served_by(rank)),
      outgoing_(sums_from(layout_, rank)),
      incoming_(sums_to(layout_, rank)),
      own_subtrees_(subtrees_of(layout_, host_)),
      parts_(static_cast<std::size_t>(layout_.world)),
      received_(incoming_.size()),
      made_(outgoing_.size()) {
  sums_.reserve(static_cast<std::size_t>(layout_.world));
  link_->listen([this](std::string_view reason) { group_.abort(reason); });
}

Seat HostsCommunicator::seat() const {
  return {rank_, layout_.world, Exchange::hosts, layout_.first_ranks};
}

void HostsCommunicator::register_arena(const ArenaRegion& region) {
  begin("register_arena", [&] {
    group_.register_arena(region);
    // Other hosts read nothing here, but nobody goes on, and perhaps fails, before all have come.
    ++rounds_;
    if (leads()) begin_headers({.kind = CollectiveKind::barrier});
    finish();
    group_.barrier();
  });
}

void HostsCommunicator::unregister_arena(const std::byte* base) {
  begin("unregister_arena", [&] { group_.unregister_arena(base); });
}

void HostsCommunicator::begin(std::string_view what, const std::function<void()>& step) {
  const auto tell_hosts = [&] {
    try {
      step();
    } catch (const std::exception& error) {
      link_->give_up(attributed(rank_, error.what()));
      link_->cancel();
      throw;
    }
  };
  group_.begin(what, std::cref(tell_hosts));
}

void HostsCommunicator::execute(kernels::Stream& /*stream*/, const Collective& collective,
                                const std::byte* input, std::byte* output,
                                std::span<std::byte> workspace) {
  const auto step = [&] {
    validate(collective, rank_, layout_.world, locals_);
    const OperandBytes bytes = operand_bytes(collective, rank_);
    static_cast<void>(group_.arenas().locate(output, bytes.output, group_.what(), "output"));
    run_kind(collective, input, output, workspace);
  };
  char what[kDescriptionBytes];
  begin(describe_into(collective, what), std::cref(step));
}

void HostsCommunicator::require_living(int peer, std::string_view fate) {
  group_.require_alive();
  require_not_stopped(watch());
  // Others may do their part and then leave. One that dies before is missed by whoever waits for
  // it, and that rank tells all others.
  if (fate.empty()) return;
  group_.require_alive();  // a peer that gave up before it left has said why
  throw PeerError(fmt::format("rank {} {}; rank {} was waiting for it in collective {} '{}'", peer,
                              fate, rank_, begun(), group_.what()));
}

void HostsCommunicator::finish_host() {
  finish();
  group_.barrier();
  group_.begin_reading();
}

HostsCommunicator::Header HostsCommunicator::header_of(const Collective& collective) const {
  Header header{fingerprint(collective), {}};
  copy_text(header.text, sizeof header.text, group_.what());
  return header;
}

std::span<const std::byte*> HostsCommunicator::meet_all(const Collective& collective,
                                                        const std::byte* operand,
                                                        std::int64_t bytes) {
  const auto operands = group_.exchange(collective, operand, bytes);
  ++rounds_;
  round_tag_ = tag_of(Message::data, rounds_, fingerprint(collective));
  if (leads()) begin_headers(collective);
  return operands;
}

void HostsCommunicator::begin_headers(const Collective& collective) {
  const std::uint64_t tag = tag_of(Message::header, rounds_, 0);
  header_ = header_of(collective);
  headers_[static_cast<std::size_t>(host_)] = header_;
  for (int host = 0; host < layout_.hosts(); ++host)
    if (host != host_)
      receive_bytes(Lane::headers, layout_.first(host), tag,
                    &headers_[static_cast<std::size_t>(host)], sizeof(Header));
  for (int host = 0; host < layout_.hosts(); ++host)
    if (host != host_)
      send_bytes(Lane::headers, layout_.first(host), tag, &header_, sizeof(Header));
  headers_under_way_ = true;
}

void HostsCommunicator::finish_headers() {
  const auto check = [this](int peer, std::string_view fate) { require_living(peer, fate); };
  link_->finish(Lane::headers, kAllMessages, std::cref(check));
  headers_under_way_ = false;
  for (int host = 1; host < layout_.hosts(); ++host) {
    const Header& other = headers_[static_cast<std::size_t>(host)];
    if (other.fingerprint != headers_[0].fingerprint)
      report_difference(0, headers_[0], layout_.first(host), other);
  }
}

void HostsCommunicator::finish(std::size_t count) {
  // Operands of another collective never come: its tags differ.
  if (headers_under_way_) finish_headers();
  const auto check = [this](int peer, std::string_view fate) { require_living(peer, fate); };
  link_->finish(Lane::operands, count, std::cref(check));
}

void HostsCommunicator::report_difference(int rank, const Header& one, int other_rank,
                                          const Header& other) const {
  throw InternalError(
      fmt::format("collective {} differs between ranks: rank {} runs '{}', rank {} runs '{}'",
                  begun(), rank, one.text, other_rank, other.text));
}

std::uint64_t HostsCommunicator::tag_of(Message message, std::uint64_t number,
                                        std::uint64_t detail) const {
  // The lowest bits keep kinds apart; the rest keeps ranks that run different collectives from
  // taking each other's operands.
  const std::uint64_t hash = mixed(mixed(0, number), detail);
  return (hash & ~std::uint64_t{3}) | static_cast<std::uint64_t>(message);
}

void HostsCommunicator::send_bytes(Lane lane, int peer, std::uint64_t tag, const void* data,
                                   std::int64_t bytes) {
  link_->send(lane, peer, tag,
              {static_cast<const std::byte*>(data), static_cast<std::size_t>(bytes)});
  sent_.fetch_add(bytes, std::memory_order_relaxed);
}

void HostsCommunicator::receive_bytes(Lane lane, int peer, std::uint64_t tag, void* data,
                                      std::int64_t bytes) {
  link_->receive(lane, peer, tag, {static_cast<std::byte*>(data), static_cast<std::size_t>(bytes)});
}

void HostsCommunicator::send_data(int peer, const std::byte* data, std::int64_t bytes,
                                  std::int64_t part) {
  if (bytes == 0) return;
  send_bytes(Lane::operands, peer,
             tag_of(Message::data, round_tag_, static_cast<std::uint64_t>(part)), data, bytes);
}

void HostsCommunicator::receive_data(int peer, std::byte* data, std::int64_t bytes,
                                     std::int64_t part) {
  if (bytes == 0) return;
  receive_bytes(Lane::operands, peer,
                tag_of(Message::data, round_tag_, static_cast<std::uint64_t>(part)), data, bytes);
}

void HostsCommunicator::abort(const std::string& reason, ExitCode /*code*/) noexcept {
  const std::string cause = attributed(rank_, reason);
  group_.abort(cause);
  link_->give_up(cause);
}

void HostsCommunicator::check() {
  try {
    group_.check();
    for (int peer = 0; peer < layout_.world; ++peer)
      if (layout_.host_of(peer) != host_)
        if (const std::string fate = link_->death_of(peer); !fate.empty())
          group_.abort(fmt::format("rank {} {}", peer, fate));
    group_.require_alive();
  } catch (const PeerError& error) {
    link_->give_up(attributed(rank_, error.what()));
    throw;
  }
}

void HostsCommunicator::close() {
  if (group_.closed() || group_.aborted()) return;
  begin("close", [this] {
    const Collective last{.kind = CollectiveKind::barrier};
    meet(last);
    const auto check = [this] { group_.require_alive(); };
    link_->close(std::cref(check));
  });
  group_.close();
}

}  // namespace strata::comm
