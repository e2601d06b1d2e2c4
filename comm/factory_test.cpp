#include "comm/factory.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::comm {
namespace {

std::string refusal(const RankContext& context, std::string_view backend) {
  try {
    make_communicator(context, backend);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Factory, SaysWhichBackendWouldServe) {
  const RankContext far{.rank = 1, .world = 4, .local_world = 2, .started_by = "slurm"};
  EXPECT_EQ(refusal(far, "shm"),
            "communication backend 'shm' serves the ranks of one host started by mlaunch or "
            "torchrun, this is rank 1 of 4 (started by slurm, 2 on this host); use 'mpi'");
  EXPECT_EQ(
      refusal(far, "single"),
      "communication backend 'single' serves one rank, this is rank 1 of 4 (started by slurm, 2 "
      "on this host); use 'auto'");
  EXPECT_EQ(
      refusal(far, "hosts"),
      "communication backend 'hosts' serves ranks that mlaunch started on several hosts, this "
      "is rank 1 of 4 (started by slurm, 2 on this host); use 'mpi'");
  RankContext spread{.rank = 1, .world = 4, .local_world = 2, .started_by = "mlaunch"};
  spread.first_ranks = {0, 2};
  spread.store = make_local_store();
  EXPECT_EQ(refusal(spread, "shm"),
            "communication backend 'shm' serves the ranks of one host started by mlaunch or "
            "torchrun, this is rank 1 of 4 (started by mlaunch, 2 on this host); use 'hosts'");
  EXPECT_EQ(refusal(far, "gloo"),
            "unknown communication backend 'gloo'; known: auto, shm, hosts, mpi, single");
}

TEST(Collective, ValidatesItsFields) {
  Collective sum{.kind = CollectiveKind::reduce_scatter, .partition = {{0, 2, 4}}};
  EXPECT_NO_THROW(validate(sum, 0, 2));
  EXPECT_THROW(validate(sum, 0, 3), InvalidArgument);
  sum.wire_type = DType::f64;
  EXPECT_THROW(validate(sum, 0, 2), InvalidArgument);
  EXPECT_THROW(validate({.kind = CollectiveKind::broadcast, .partition = {{0, 4, 2}}}, 0, 2),
               InvalidArgument);
  EXPECT_THROW(validate({.kind = CollectiveKind::broadcast, .partition = {{1, 2, 4}}}, 0, 2),
               InvalidArgument);
  EXPECT_THROW(validate({.kind = CollectiveKind::send, .partition = {{0, 2, 4}}, .peer = 0}, 0, 2),
               InvalidArgument);
  EXPECT_NO_THROW(
      validate({.kind = CollectiveKind::send, .partition = {{0, 2, 4}}, .peer = 1}, 0, 2));
  EXPECT_THROW(validate({.kind = CollectiveKind::send, .partition = {{0, 2, 4}}, .peer = 2}, 0, 2),
               InvalidArgument);
}

TEST(Collective, FingerprintTellsDifferencesThatMatter) {
  const Collective base{.kind = CollectiveKind::reduce_scatter, .partition = {{0, 2, 4}}};
  Collective other = base;
  EXPECT_EQ(fingerprint(base), fingerprint(other));
  other.partition.bounds[1] = 3;
  EXPECT_NE(fingerprint(base), fingerprint(other));
  other = base;
  other.wire_type = DType::bf16;
  EXPECT_NE(fingerprint(base), fingerprint(other));
  // A gather copies bytes unchanged, so its wire type does not matter.
  other.kind = CollectiveKind::all_gather;
  Collective gather = base;
  gather.kind = CollectiveKind::all_gather;
  EXPECT_EQ(fingerprint(gather), fingerprint(other));
  Collective send{.kind = CollectiveKind::send, .partition = {{0, 2, 4}}, .peer = 1};
  Collective receive{.kind = CollectiveKind::receive, .partition = {{0, 2, 4}}, .peer = 0};
  EXPECT_EQ(fingerprint(send), fingerprint(receive));
}

}  // namespace
}  // namespace strata::comm
