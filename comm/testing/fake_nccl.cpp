#include "comm/testing/fake_nccl.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/check.h"
#include "kernels/math/float16.h"

namespace strata::comm {
namespace {

/// A message in its sender's memory that waits to be fetched.
struct Message {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool posted = false, taken = false;
};

struct World {
  std::mutex mutex;
  int ranks = 0, joined = 0;
  std::vector<Message> messages;  ///< the message from a to b is at a * ranks + b
};

struct Outgoing {
  int to;
  const std::byte* data;
  std::size_t bytes;
  bool posted = false, done = false;
};

struct Incoming {
  int from;
  std::byte* data;
  std::size_t bytes;
  bool done = false;
};

/// The work of a rank in the current group.
struct Comm {
  std::shared_ptr<World> world;
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

  Message& way(int from, int to) {
    return world->messages[static_cast<std::size_t>(from * world->ranks + to)];
  }
};

Comm& behind(ncclComm_t comm) { return *reinterpret_cast<Comm*>(comm); }

/// The communicator of this thread's open group.
thread_local Comm* in_group = nullptr;
thread_local int group_depth = 0;

std::mutex worlds_mutex;
std::map<std::string, std::weak_ptr<World>> worlds;

/// Moves what can move now; returns true when nothing is left to do.
bool progress(Comm& comm) {
  const std::lock_guard lock(comm.world->mutex);
  bool all = comm.world->joined == comm.world->ranks;
  for (Outgoing& out : comm.outgoing) {
    Message& message = comm.way(comm.rank, out.to);
    if (!out.posted && !message.posted) {
      message = {out.data, out.bytes, true, false};
      out.posted = true;
    } else if (out.posted && !out.done && message.taken) {
      message = {};
      out.done = true;
    }
    all = all && out.done;
  }
  for (Incoming& in : comm.incoming) {
    Message& message = comm.way(in.from, comm.rank);
    if (!in.done && message.posted && !message.taken) {
      if (message.bytes != in.bytes)
        comm.error = ncclInvalidUsage;
      else
        std::memcpy(in.data, message.data, in.bytes);
      message.taken = in.done = true;
    }
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
  calling(handle).outgoing.push_back(
      {peer, static_cast<const std::byte*>(data), bytes_of(count, type)});
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
  for (int peer = 0; peer < comm.world->ranks; ++peer)
    if (peer != root) send(from, count, type, peer, handle, stream);
  if (from != to) std::memcpy(to, from, bytes_of(count, type));
  return ncclSuccess;
}

ncclResult_t all_gather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclComm_t handle, cudaStream_t stream) {
  Comm& comm = calling(handle);
  for (int owner = 0; owner < comm.world->ranks; ++owner)
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
  comm.arrived.resize(static_cast<std::size_t>(comm.world->ranks));
  for (int peer = 0; peer < comm.world->ranks; ++peer) {
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
  comm.numbers.arrived.assign(static_cast<std::size_t>(comm.world->ranks),
                              std::vector<std::byte>(bytes));
  for (int peer = 0; peer < comm.world->ranks; ++peer)
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

ncclResult_t init_rank(ncclComm_t* handle, int ranks, ncclUniqueId id, int rank,
                       ncclConfig_t* config) {
  STRATA_CHECK(config->blocking == 0);
  const std::lock_guard lock(worlds_mutex);
  std::weak_ptr<World>& known = worlds[std::string(id.internal, sizeof id.internal)];
  std::shared_ptr<World> world = known.lock();
  if (!world) {
    world = std::make_shared<World>();
    world->ranks = ranks;
    world->messages.resize(static_cast<std::size_t>(ranks * ranks));
    known = world;
  }
  const std::lock_guard world_lock(world->mutex);
  ++world->joined;
  auto comm = std::make_unique<Comm>();
  comm->world = world;
  comm->rank = rank;
  *handle = reinterpret_cast<ncclComm_t>(comm.release());
  ++fake_nccl_alive();
  return ncclInProgress;
}

/// Removes the communicator's messages, too.
ncclResult_t abort(ncclComm_t handle) {
  const std::unique_ptr<Comm> comm(&behind(handle));
  const std::lock_guard lock(comm->world->mutex);
  for (const Outgoing& out : comm->outgoing)
    if (out.posted && !out.done) comm->way(comm->rank, out.to) = {};
  --fake_nccl_alive();
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
  f.get_unique_id = [](ncclUniqueId* id) {
    static std::atomic<std::uint64_t> next{1};
    const std::uint64_t number = next++;
    std::memcpy(id->internal + sizeof id->internal - sizeof number, &number, sizeof number);
    return ncclSuccess;
  };
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
  static const NcclFunctions functions = make_functions();
  return functions;
}

std::atomic<int>& fake_nccl_failing_rank() {
  static std::atomic<int> rank{-1};
  return rank;
}

std::atomic<int>& fake_nccl_alive() {
  static std::atomic<int> alive{0};
  return alive;
}

}  // namespace strata::comm
