#include "comm/gather_texts.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "comm/copy_bytes.h"
#include "comm/host_stream.h"
#include "comm/mapped_file.h"
#include "comm/shown_collective.h"

namespace strata::comm {
namespace {

/// Returns every rank's text; `sizes_bytes` are their lengths, by rank. Makes an arena for the
/// call.
std::vector<std::string> gather(Communicator& communicator, std::string_view mine,
                                std::span<const std::int64_t> sizes_bytes) {
  const ShownCollective shown(communicator, "gather texts of ranks");
  Collective collective{.kind = CollectiveKind::all_gather, .input_type = DType::u8};
  collective.partition.bounds = {0};
  for (const std::int64_t size : sizes_bytes)
    collective.partition.bounds.push_back(collective.partition.total() + size);
  const auto bytes =
      static_cast<std::size_t>(std::max<std::int64_t>(collective.partition.total(), 1));

  const UniqueFd fd = make_memfd("strata-texts", bytes);
  const MappedFile arena(fd.get(), bytes, Access::read_write, "arena of texts");
  std::byte* all = arena.memory().data();
  std::byte* own = all + collective.partition.begin(communicator.rank());
  copy_bytes(own, reinterpret_cast<const std::byte*>(mine.data()),
             static_cast<std::int64_t>(mine.size()));
  communicator.register_arena({all, static_cast<std::int64_t>(bytes), fd.get()});
  std::vector<std::byte> workspace(
      static_cast<std::size_t>(communicator.workspace_bytes(collective)));
  HostStream stream;
  communicator.run(stream, collective, own, all, workspace);
  communicator.unregister_arena(all);

  std::vector<std::string> texts;
  texts.reserve(static_cast<std::size_t>(communicator.size()));
  for (int rank = 0; rank < communicator.size(); ++rank)
    texts.emplace_back(reinterpret_cast<const char*>(all) + collective.partition.begin(rank),
                       static_cast<std::size_t>(collective.partition.count(rank)));
  return texts;
}

}  // namespace

std::vector<std::int64_t> gather_numbers(Communicator& communicator, std::int64_t mine) {
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(communicator.size()), sizeof mine);
  std::vector<std::int64_t> numbers;
  const std::string_view own(reinterpret_cast<const char*>(&mine), sizeof mine);
  for (const std::string& text : gather(communicator, own, sizes)) {
    std::int64_t number = 0;
    std::memcpy(&number, text.data(), sizeof number);
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::string> gather_texts(Communicator& communicator, std::string_view mine) {
  return gather(communicator, mine,
                gather_numbers(communicator, static_cast<std::int64_t>(mine.size())));
}

}  // namespace strata::comm
