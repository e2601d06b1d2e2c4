#include "comm/mesh.h"

#include "core/check.h"

namespace strata::comm {
namespace {

constexpr std::array<std::string_view, kMeshAxes> kAxisNames{"data", "tensor", "pipeline",
                                                             "sequence", "expert"};
/// Axes in the order in which ranks are numbered, the fastest first.
constexpr std::array kNearestFirst{MeshAxis::tensor, MeshAxis::sequence, MeshAxis::expert,
                                   MeshAxis::data, MeshAxis::pipeline};

}  // namespace

std::string_view name_of(MeshAxis axis) { return kAxisNames[static_cast<std::size_t>(axis)]; }

std::string to_string(AxisSet axes) {
  std::string text;
  for (int i = 0; i < kMeshAxes; ++i)
    if (const auto axis = static_cast<MeshAxis>(i); axes.has(axis))
      text += (text.empty() ? "" : "+") + std::string(name_of(axis));
  return text;
}

int Mesh::ranks(AxisSet axes) const {
  int product = 1;
  for (const MeshAxis axis : kNearestFirst)
    if (axes.has(axis)) product *= along(axis);
  return product;
}

AxisSet Mesh::spanned(AxisSet axes) const {
  bool found = false;
  AxisSet spanned = MeshAxis::data;
  for (const MeshAxis axis : kNearestFirst) {
    if (!axes.has(axis) || along(axis) == 1) continue;
    spanned = found ? spanned | axis : axis;
    found = true;
  }
  return spanned;
}

Mesh data_mesh(int ranks) {
  Mesh mesh;
  mesh.sizes[static_cast<std::size_t>(MeshAxis::data)] = ranks;
  return mesh;
}

MeshPoint point_of(const Mesh& mesh, int rank) {
  STRATA_CHECK(rank >= 0 && rank < mesh.ranks(), rank, mesh.ranks());
  MeshPoint point;
  for (const MeshAxis axis : kNearestFirst) {
    point.at[static_cast<std::size_t>(axis)] = rank % mesh.along(axis);
    rank /= mesh.along(axis);
  }
  return point;
}

int rank_of(const Mesh& mesh, const MeshPoint& point, AxisSet axes) {
  int rank = 0, stride = 1;
  for (const MeshAxis axis : kNearestFirst) {
    if (!axes.has(axis)) continue;
    rank += point.along(axis) * stride;
    stride *= mesh.along(axis);
  }
  return rank;
}

}  // namespace strata::comm
