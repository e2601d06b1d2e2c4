#include "comm/mesh.h"

#include <gtest/gtest.h>

#include <set>

#include "comm/seat.h"

namespace strata::comm {
namespace {

constexpr AxisSet kDataAndTensor = AxisSet(MeshAxis::data) | MeshAxis::tensor;

/// 3 ranks along data, 2 along tensor, 2 along pipeline.
const Mesh kMesh{{3, 2, 2, 1, 1}};

TEST(Mesh, NumbersRanksWithTensorNeighboursSideBySide) {
  EXPECT_EQ(kMesh.ranks(), 12);
  EXPECT_EQ(kMesh.ranks(MeshAxis::tensor), 2);
  EXPECT_EQ(kMesh.ranks(kDataAndTensor), 6);
  EXPECT_EQ(point_of(kMesh, 0), MeshPoint{});
  EXPECT_EQ(point_of(kMesh, 1).along(MeshAxis::tensor), 1);
  EXPECT_EQ(point_of(kMesh, 2).along(MeshAxis::data), 1);
  EXPECT_EQ(point_of(kMesh, 6).along(MeshAxis::pipeline), 1);
  for (int rank = 0; rank < kMesh.ranks(); ++rank)
    EXPECT_EQ(rank_of(kMesh, point_of(kMesh, rank)), rank);
}

TEST(Mesh, OnlyDataHasTheNumbersOfTheWorld) {
  for (int rank = 0; rank < 4; ++rank) {
    const MeshPoint point = point_of(data_mesh(4), rank);
    EXPECT_EQ(point.along(MeshAxis::data), rank);
    EXPECT_EQ(rank_of(data_mesh(4), point, MeshAxis::data), rank);
  }
}

TEST(Mesh, RanksThatCommunicateHaveNumbersFromZero) {
  std::set<int> numbers;
  for (int rank = 0; rank < kMesh.ranks(); ++rank) {
    const MeshPoint point = point_of(kMesh, rank);
    if (point.along(MeshAxis::pipeline) == 1) numbers.insert(rank_of(kMesh, point, kDataAndTensor));
  }
  EXPECT_EQ(numbers, (std::set{0, 1, 2, 3, 4, 5}));
}

TEST(Mesh, SpannedLeavesOutAxesOfOneRank) {
  EXPECT_EQ(kMesh.spanned(kDataAndTensor | MeshAxis::expert), kDataAndTensor);
  EXPECT_EQ(kMesh.spanned(MeshAxis::expert), AxisSet(MeshAxis::data));
  EXPECT_EQ(data_mesh(4).spanned(AxisSet::all()), AxisSet(MeshAxis::data));
  EXPECT_EQ(to_string(kDataAndTensor), "data+tensor");
}

TEST(MeshSeat, IsASeatOnEachSetOfAxes) {
  const MeshSeat seat{kMesh, point_of(kMesh, 9), Exchange::messages};
  EXPECT_EQ(seat.on(MeshAxis::data), (Seat{1, 3, Exchange::messages}));
  EXPECT_EQ(seat.on(kDataAndTensor), (Seat{3, 6, Exchange::messages}));
  EXPECT_EQ(MeshSeat::of(seat.on(MeshAxis::data)).on(MeshAxis::data), seat.on(MeshAxis::data));
}

}  // namespace
}  // namespace strata::comm
