// The instruction sets for which vector code is compiled. Include before <hwy/foreach_target.h>.
//
// There are three: SSE4 (the least that runs), AVX2 with FMA, AVX-512. The finer AVX-512 sets bring
// nothing to fp32 arithmetic and cost compile time. AVX2 and AVX-512 give equal bits: shapes fix
// every kernel's order of additions, and both fuse multiply-add. SSE4 has no fused multiply-add.
#pragma once

#define HWY_WANT_SSSE3 1
#define HWY_WANT_SSE4 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
