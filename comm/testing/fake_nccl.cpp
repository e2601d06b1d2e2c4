#include "comm/testing/fake_nccl.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "core/check.h"
#include "kernels/math/float16.h"

namespace strata::comm {
namespace {

constexpr int kMostRanks = 8;
constexpr std::size_t kWorlds = 16;  ///< that can be alive at a time
constexpr std::size_t kChunkBytes = 64 << 10;

/// The way from one rank to another. Messages pass in order, a chunk at a time.
struct Way {
  std::atomic<bool> full;  ///< a chunk waits to be taken
  std::size_t message_bytes;
  std::byte chunk[kChunkBytes];
};

struct World {
  std::atomic<int> joined;
  Way ways[kMostRanks][kMostRanks];  ///< from, to
};

/// The memory that ranks share, also forked ones.
struct Board {
  std::atomic<std::uint64_t> next_id;
  std::atomic<std::int64_t> sent_bytes[kMostRanks][kMostRanks];
  World worlds[kWorlds];
};

Board& board() {
  static Board* const mapped = [] {
    void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    STRATA_CHECK(memory != MAP_FAILED);
    return new (memory) Board;  // default-initialized: pages stay untouched and zero
  }();
  return *mapped;
}

struct Outgoing {
  int to;
  const std::byte* data;
  std::size_t bytes;
  std::size_t moved = 0;
  bool done = false;
};

struct Incoming {
  int from;
  std::byte* data;
  std::size_t bytes;
  std::size_t moved = 0;
  bool done = false;
};

/// The work of a rank in the current group.
struct Comm {
  World* world = nullptr;
  int ranks = 0;
  int rank = 0;
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  // An all_reduce adds when all values have arrived.
  std::uint64_t* sum = nullptr;
  std::size_t sum_elements = 0;
  std::vector<std::vector<std::uint64_t>> arrived;
  // A reduce of floats to this rank adds when all values have arrived, too.
  struct {
    const void* own = nullptr;
    void* to = nullptr;
    std::size_t count = 0;
    ncclDataType_t type = ncclFloat32;
    std::vector<std::vector<std::byte>> arrived;
  } numbers;
  ncclResult_t error = ncclSuccess;
};

Comm& behind(ncclComm_t comm) { return *reinterpret_cast<Comm*>(comm); }

/// The communicator of this thread's open group.
thread_local Comm* in_group = nullptr;
thread_local int group_depth = 0;

/// Moves a chunk of the message if the way is free, and sees when the last one was taken.
void push(Outgoing& out, Way& way) {
  if (way.full.load(std::memory_order_acquire)) return;
  if (out.moved == out.bytes) {
    out.done = true;
    return;
  }
  const std::size_t bytes = std::min(kChunkBytes, out.bytes - out.moved);
  std::memcpy(way.chunk, out.data + out.moved, bytes);
  way.message_bytes = out.bytes;
  out.moved += bytes;
  way.full.store(true, std::memory_order_release);
}

/// Takes a chunk if one is there. Returns false if it belongs to a message of another size.
bool pull(Incoming& in, Way& way) {
  if (in.moved == in.bytes) in.done = true;
  if (in.done || !way.full.load(std::memory_order_acquire)) return true;
  if (way.message_bytes != in.bytes) return false;
  const std::size_t bytes = std::min(kChunkBytes, in.bytes - in.moved);
  std::memcpy(in.data + in.moved, way.chunk, bytes);
  in.moved += bytes;
  in.done = in.moved == in.bytes;
  way.full.store(false, std::memory_order_release);
  return true;
}

/// Moves what can move now; returns true when nothing is left to do.
bool progress(Comm& comm) {
  bool all = comm.world->joined == comm.ranks;
  std::array<bool, kMostRanks> busy{};  // an earlier message of the way is not through
  for (Outgoing& out : comm.outgoing) {
    const auto to = static_cast<std::size_t>(out.to);
    if (!out.done && !busy[to]) push(out, comm.world->ways[comm.rank][to]);
    busy[to] = busy[to] || !out.done;
    all = all && out.done;
  }
  busy = {};
  for (Incoming& in : comm.incoming) {
    const auto from = static_cast<std::size_t>(in.from);
    if (!in.done && !busy[from] && !pull(in, comm.world->ways[from][comm.rank]))
      comm.error = ncclInvalidUsage;
    busy[from] = busy[from] || !in.done;
    all = all && in.done;
  }
  return all;
}

float number_at(const void* from, std::size_t i, ncclDataType_t type) {
  if (type == ncclFloat32) return static_cast<const float*>(from)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(from)[i];
  return type == ncclBfloat16 ? kernels::bf16_to_f32(bits) : kernels::f16_to_f32(bits);
}

/// Adds from the last rank to the first and rounds each sum: a different order and precision.
void add_numbers(Comm& comm) {
  auto& n = comm.numbers;
  for (std::size_t i = 0; n.to != nullptr && i < n.count; ++i) {
    float sum = 0;
    for (std::size_t peer = n.arrived.size(); peer-- > 0;) {
      const bool own = static_cast<int>(peer) == comm.rank;
      sum += number_at(own ? n.own : n.arrived[peer].data(), i, n.type);
      if (n.type == ncclBfloat16) sum = kernels::bf16_to_f32(kernels::f32_to_bf16(sum));
      if (n.type == ncclFloat16) sum = kernels::f16_to_f32(kernels::f32_to_f16(sum));
    }
    if (n.type == ncclFloat32)
      static_cast<float*>(n.to)[i] = sum;
    else
      static_cast<std::uint16_t*>(n.to)[i] =
          n.type == ncclBfloat16 ? kernels::f32_to_bf16(sum) : kernels::f32_to_f16(sum);
  }
  n.to = nullptr;
}

void finish(Comm& comm) {
  add_numbers(comm);
  for (const std::vector<std::uint64_t>& words : comm.arrived)
    for (std::size_t i = 0; comm.sum != nullptr && i < comm.sum_elements && i < words.size(); ++i)
      comm.sum[i] += words[i];
  comm.sum = nullptr;
  comm.outgoing.clear();
  comm.incoming.clear();
}

std::size_t bytes_of(std::size_t count, ncclDataType_t type) {
  STRATA_CHECK(type == ncclInt8 || type == ncclUint64, type);
  return type == ncclInt8 ? count : 8 * count;
}

Comm& calling(ncclComm_t handle) {
  STRATA_CHECK(group_depth == 1, "a call outside of a group");
  in_group = &behind(handle);
  return *in_group;
}

ncclResult_t send(const void* data, std::size_t count, ncclDataType_t type, int peer,
                  ncclComm_t handle, cudaStream_t) {
  Comm& comm = calling(handle);
  const std::size_t bytes = bytes_of(count, type);
  comm.outgoing.push_back({peer, static_cast<const std::byte*>(data), bytes});
  board().sent_bytes[comm.rank][peer] += static_cast<std::int64_t>(bytes);
  return ncclSuccess;
}

ncclResult_t receive(void* data, std::size_t count, ncclDataType_t type, int peer,
                     ncclComm_t handle, cudaStream_t) {
  calling(handle).incoming.push_back({peer, static_cast<std::byte*>(data), bytes_of(count, type)});
  return ncclSuccess;
}

ncclResult_t broadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                       ncclComm_t handle, cudaStream_t stream) {
  Comm& comm = calling(handle);
  if (comm.rank != root) return receive(to, count, type, root, handle, stream);
  for (int peer = 0; peer < comm.ranks; ++peer)
    if (peer != root) send(from, count, type, peer, handle, stream);
  if (from != to) std::memcpy(to, from, bytes_of(count, type));
  return ncclSuccess;
}

ncclResult_t all_gather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclComm_t handle, cudaStream_t stream) {
  Comm& comm = calling(handle);
  for (int owner = 0; owner < comm.ranks; ++owner)
    broadcast(from, static_cast<std::byte*>(to) + bytes_of(count, type) * owner, count, type, owner,
              handle, stream);
  return ncclSuccess;
}

ncclResult_t all_reduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  Comm& comm = calling(handle);
  STRATA_CHECK(from == to && type == ncclUint64 && operation == ncclSum);
  comm.sum = static_cast<std::uint64_t*>(to);
  comm.sum_elements = count;
  comm.arrived.resize(static_cast<std::size_t>(comm.ranks));
  for (int peer = 0; peer < comm.ranks; ++peer) {
    if (peer == comm.rank) continue;
    auto& words = comm.arrived[static_cast<std::size_t>(peer)];
    words.resize(std::max(words.size(), count));
    send(from, count, type, peer, handle, stream);
    receive(words.data(), count, type, peer, handle, stream);
  }
  return ncclSuccess;
}

ncclResult_t reduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                    ncclRedOp_t operation, int root, ncclComm_t handle, cudaStream_t stream) {
  Comm& comm = calling(handle);
  STRATA_CHECK(operation == ncclSum);
  const std::size_t bytes = count * (type == ncclFloat32 ? 4 : 2);
  if (comm.rank != root) return send(from, bytes, ncclInt8, root, handle, stream);
  STRATA_CHECK(comm.numbers.to == nullptr, "two sums for one rank in a group");
  comm.numbers.own = from;
  comm.numbers.to = to;
  comm.numbers.count = count;
  comm.numbers.type = type;
  comm.numbers.arrived.assign(static_cast<std::size_t>(comm.ranks), std::vector<std::byte>(bytes));
  for (int peer = 0; peer < comm.ranks; ++peer)
    if (peer != root)
      receive(comm.numbers.arrived[static_cast<std::size_t>(peer)].data(), bytes, ncclInt8, peer,
              handle, stream);
  return ncclSuccess;
}

ncclResult_t group_end() {
  STRATA_CHECK(group_depth == 1);
  --group_depth;
  const bool anything = in_group != nullptr;
  in_group = nullptr;
  return anything ? ncclInProgress : ncclSuccess;
}

ncclResult_t async_error(ncclComm_t handle, ncclResult_t* state) {
  Comm& comm = behind(handle);
  if (comm.rank == fake_nccl_failing_rank()) comm.error = ncclRemoteError;
  *state = comm.error != ncclSuccess ? comm.error : ncclInProgress;
  if (comm.error != ncclSuccess || !progress(comm)) return ncclSuccess;
  finish(comm);
  *state = comm.error;
  return ncclSuccess;
}

std::uint64_t number_of(const ncclUniqueId& id) {
  std::uint64_t number;
  std::memcpy(&number, id.internal + sizeof id.internal - sizeof number, sizeof number);
  return number;
}

ncclResult_t init_rank(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank,
                       ncclConfig_t* config) {
  STRATA_CHECK(config->blocking == 0);
  STRATA_CHECK(ranks <= kMostRanks);
  auto comm = std::make_unique<Comm>();
  comm->world = &board().worlds[number_of(id) % kWorlds];
  comm->ranks = ranks;
  comm->rank = rank;
  ++comm->world->joined;
  *handle = reinterpret_cast<ncclComm_t>(comm.release());
  ++fake_nccl_alive();
  return ncclInProgress;
}

ncclResult_t abort(ncclComm_t handle) {
  const std::unique_ptr<Comm> comm(&behind(handle));
  --fake_nccl_alive();
  return ncclSuccess;
}

/// Makes an id and clears its world, where an earlier one may have left messages.
ncclResult_t get_unique_id(ncclUniqueId* id) {
  const std::uint64_t number = ++board().next_id;
  std::memcpy(id->internal + sizeof id->internal - sizeof number, &number, sizeof number);
  World& world = board().worlds[number % kWorlds];
  world.joined = 0;
  for (auto& ways : world.ways)
    for (Way& way : ways) way.full = false;
  return ncclSuccess;
}

NcclFunctions make_functions() {
  NcclFunctions f;
  f.get_version = [](int* version) {
    *version = 22809;
    return ncclSuccess;
  };
  f.get_error_string = [](ncclResult_t result) -> const char* {
    return result == ncclRemoteError ? "remote process exited" : "invalid usage";
  };
  f.get_last_error = [](ncclComm_t) -> const char* { return "details"; };
  f.get_unique_id = get_unique_id;
  f.comm_init_rank = init_rank;
  f.comm_get_async_error = async_error;
  f.comm_finalize = [](ncclComm_t) { return ncclSuccess; };
  f.comm_destroy = abort;
  f.comm_abort = abort;
  f.group_start = [] {
    ++group_depth;
    return ncclSuccess;
  };
  f.group_end = group_end;
  f.send = send;
  f.receive = receive;
  f.all_gather = all_gather;
  f.all_reduce = all_reduce;
  f.broadcast = broadcast;
  f.reduce = reduce;
  return f;
}

}  // namespace

const NcclFunctions& fake_nccl() {
  static_cast<void>(board());
  static const NcclFunctions functions = make_functions();
  return functions;
}

std::int64_t fake_nccl_sent_bytes(int from, int to) { return board().sent_bytes[from][to]; }

std::atomic<int>& fake_nccl_failing_rank() {
  static std::atomic<int> rank{-1};
  return rank;
}

std::atomic<int>& fake_nccl_alive() {
  static std::atomic<int> alive{0};
  return alive;
}

}  // namespace strata::comm
