// The mesh of ranks: how many ranks there are along each axis, the place of a rank, and which ranks
// communicate together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::comm {

/// All axes but `data` have one rank so far; their names are for later passes.
enum class MeshAxis : std::uint8_t { data, tensor, pipeline, sequence, expert };
inline constexpr int kMeshAxes = 5;

std::string_view name_of(MeshAxis axis);

/// A set of axes: ranks that differ along these alone communicate together.
class AxisSet {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): an axis is a set of one
  constexpr AxisSet(MeshAxis axis) : bits_(1U << static_cast<unsigned>(axis)) {}
  static constexpr AxisSet all() { return AxisSet((1U << kMeshAxes) - 1); }

  [[nodiscard]] constexpr bool has(MeshAxis axis) const {
    return (bits_ & AxisSet(axis).bits_) != 0;
  }
  constexpr AxisSet operator|(AxisSet other) const { return AxisSet(bits_ | other.bits_); }
  constexpr bool operator==(const AxisSet&) const = default;
  /// Number of this set, from 0 to kAxisSets - 1.
  [[nodiscard]] constexpr std::size_t index() const { return bits_; }

 private:
  explicit constexpr AxisSet(unsigned bits) : bits_(bits) {}
  unsigned bits_;
};
inline constexpr std::size_t kAxisSets = std::size_t{1} << kMeshAxes;

/// Names of the axes: "data", "data+tensor".
std::string to_string(AxisSet axes);

struct Mesh {
  std::array<int, kMeshAxes> sizes{1, 1, 1, 1, 1};  ///< ranks along each MeshAxis

  [[nodiscard]] int along(MeshAxis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  /// Number of ranks that communicate together over `axes`; over all axes: the world.
  [[nodiscard]] int ranks(AxisSet axes = AxisSet::all()) const;
  /// Returns those of `axes` that have more than one rank, or `data` if there are none.
  [[nodiscard]] AxisSet spanned(AxisSet axes) const;
  bool operator==(const Mesh&) const = default;
};
/// A mesh of `ranks` along the data axis.
Mesh data_mesh(int ranks);

/// The coordinates of a rank.
struct MeshPoint {
  std::array<int, kMeshAxes> at{};
  [[nodiscard]] int along(MeshAxis axis) const { return at[static_cast<std::size_t>(axis)]; }
  bool operator==(const MeshPoint&) const = default;
};
/// Numbers ranks along tensor first, then sequence, expert, data, pipeline, so that ranks that send
/// most to one another are nearest.
MeshPoint point_of(const Mesh& mesh, int rank);
/// Returns the number of the rank at `point` among those that communicate over `axes`; over all
/// axes: in the world.
int rank_of(const Mesh& mesh, const MeshPoint& point, AxisSet axes = AxisSet::all());

}  // namespace strata::comm
