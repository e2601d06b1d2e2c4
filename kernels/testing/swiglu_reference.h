// silu(gate) * up of single numbers in fp64.
#pragma once

#include <cmath>

namespace strata::kernels::reference {

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double swiglu(double gate, double up) { return gate * sigmoid(gate) * up; }
inline double swiglu_gate_gradient(double gate, double up) {
  const double s = sigmoid(gate);
  return up * (s + gate * s * (1 - s));
}
inline double swiglu_up_gradient(double gate) { return gate * sigmoid(gate); }

}  // namespace strata::kernels::reference
