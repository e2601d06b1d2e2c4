// Elementary functions of fp32 vectors, with errors of a few units in the last place at most. The
// polynomials are weighted least-squares fits, made minimax by reweighting.

#if defined(STRATA_KERNELS_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_MATH_INL_H_
#undef STRATA_KERNELS_CPU_MATH_INL_H_
#else
#define STRATA_KERNELS_CPU_MATH_INL_H_
#endif

#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {

/// Returns e^x for x <= 88.3, and 0 below -87.3, where results would be subnormal. NaN stays NaN.
HWY_INLINE V exp_lanes(V x) {
  // Adding 1.5 * 2^23 + 127 leaves round(x / ln 2) + 127 in the low bits: the exponent field of
  // 2^k.
  const V magic = all(12583039.0f);
  const V shifted = hn::MulAdd(x, all(1.44269504088896341f), magic);
  const V k = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(k, all(0.693359375f), x);  // ln 2 in two pieces: the first product is exact
  r = hn::NegMulAdd(k, all(-2.12194440e-4f), r);
  V p = all(0.001381455920636654f);
  p = hn::MulAdd(p, r, all(0.008368736132979393f));
  p = hn::MulAdd(p, r, all(0.04166838899254799f));
  p = hn::MulAdd(p, r, all(0.1666652113199234f));
  p = hn::MulAdd(p, r, all(0.4999999403953552f));
  const V y = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), all(1.0f));
  const V power = hn::BitCast(F(), hn::ShiftLeft<23>(hn::BitCast(U(), shifted)));
  return hn::IfThenElse(hn::Lt(x, all(-87.3f)), hn::Zero(F()), hn::Mul(y, power));
}

/// 1 / (1 + e^-x) and 1 minus that, each exact to a few units in its own last place.
struct SigmoidPair {
  V value;
  V complement;
};
HWY_INLINE SigmoidPair sigmoid_lanes(V x) {
  // e^-|x| never overflows; the two halves swap by the sign of x.
  const V small = exp_lanes(hn::Neg(hn::Abs(x)));
  const V large_part = hn::Div(all(1.0f), hn::Add(all(1.0f), small));
  const V small_part = hn::Mul(small, large_part);
  const auto negative = hn::Lt(x, hn::Zero(F()));
  return {hn::IfThenElse(negative, small_part, large_part),
          hn::IfThenElse(negative, large_part, small_part)};
}

HWY_INLINE V erf_lanes(V x) {
  const V t = hn::Min(all(4.0f), hn::Abs(x));  // erfc(4) is half an ulp of 1; NaN stays
  const V s = hn::Mul(t, t);
  V near = all(7.854025170672685e-05f);
  near = hn::MulAdd(near, s, all(-0.0008010247256606817f));
  near = hn::MulAdd(near, s, all(0.00518833426758647f));
  near = hn::MulAdd(near, s, all(-0.026853816583752632f));
  near = hn::MulAdd(near, s, all(0.1128358542919159f));
  near = hn::MulAdd(near, s, all(-0.3761262595653534f));
  near = hn::Mul(hn::MulAdd(near, s, all(1.1283791065216064f)), t);
  V far = all(2.1686810214305297e-05f);  // -ln(erfc(t)) on [1, 4]
  far = hn::MulAdd(far, t, all(-0.00044133589835837483f));
  far = hn::MulAdd(far, t, all(0.004204559605568647f));
  far = hn::MulAdd(far, t, all(-0.0252082496881485f));
  far = hn::MulAdd(far, t, all(0.10841856896877289f));
  far = hn::MulAdd(far, t, all(0.6332198977470398f));
  far = hn::MulAdd(far, t, all(1.1295784711837769f));
  far = hn::MulAdd(far, t, all(-0.0001880388444988057f));
  far = hn::Sub(all(1.0f), exp_lanes(hn::Neg(far)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(t, all(1.0f)), near, far), x);
}

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
