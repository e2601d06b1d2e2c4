#include "comm/threads/thread_link.h"

#include <cstring>
#include <new>

#include "comm/peer_memory/board.h"

namespace strata::comm {

std::shared_ptr<std::byte> make_thread_board(int world) {
  constexpr std::align_val_t kAlignment{64};
  const std::size_t bytes = Board::bytes(world);
  auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment));
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* gone) { ::operator delete(gone, kAlignment); }};
}

}  // namespace strata::comm
