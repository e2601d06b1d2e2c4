// Philox4x32-10 on vectors: kLanes counters at once. Even and odd lanes go through the rounds
// separately, as 64-bit numbers, because the machine's 32 x 32 -> 64 multiplication takes those.

#if defined(STRATA_KERNELS_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_PHILOX_INL_H_
#undef STRATA_KERNELS_CPU_PHILOX_INL_H_
#else
#define STRATA_KERNELS_CPU_PHILOX_INL_H_
#endif

#include "kernels/cpu/lanes-inl.h"
#include "kernels/math/philox.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {

using V32 = hn::Vec<U>;

/// Words 0-3 of kLanes blocks.
struct PhiloxWords {
  V32 word[4];
};

/// The keys of all rounds, in memory: filling a vector with one of them from there costs nothing.
struct PhiloxKeys {
  std::uint64_t of[kPhiloxRounds][2];

  explicit HWY_INLINE PhiloxKeys(PhiloxKey key) {
    for (auto& round : of) {
      round[0] = key[0];
      round[1] = key[1];
      key = {key[0] + kPhiloxWeyl0, key[1] + kPhiloxWeyl1};
    }
  }
};

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE PhiloxWords philox_lanes(const RandomSource& source, const PhiloxKeys&,
                                    std::uint64_t first, std::uint32_t) {
  const PhiloxBlock block = source.words(first);
  PhiloxWords words;
  for (std::size_t i = 0; i < 4; ++i) words.word[i] = hn::Set(U(), block[i]);
  return words;
}

#else

using U64 = hn::Repartition<std::uint64_t, U>;
using V64 = hn::Vec<U64>;

HWY_INLINE V64 all64(std::uint64_t value) { return hn::Set(U64(), value); }

/// The four words of one counter per 64-bit lane, of which only the low half counts; the high half
/// of a result is undefined. They are no array, because the compiler would keep that in memory.
struct PhiloxState {
  V64 a, b, c, d;
};

HWY_INLINE void philox_round(PhiloxState& state, V64 key0, V64 key1) {
  const V64 product0 =
      hn::MulEven(hn::BitCast(U(), state.a), hn::BitCast(U(), all64(kPhiloxMultiplier0)));
  const V64 product1 =
      hn::MulEven(hn::BitCast(U(), state.c), hn::BitCast(U(), all64(kPhiloxMultiplier1)));
  state = {hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), state.b), key0), product1,
           hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), state.d), key1), product0};
}

HWY_INLINE V32 interleave(V64 even, V64 odd) {
  return hn::BitCast(U(), hn::Or(hn::And(even, all64(0xffffffffu)), hn::ShiftLeft<32>(odd)));
}

/// Returns in lane i the words of block first + i * step.
HWY_INLINE PhiloxWords philox_lanes(const RandomSource& source, const PhiloxKeys& keys,
                                    std::uint64_t first, std::uint32_t step) {
  const V64 lane = hn::Iota(U64(), 0);
  const auto twice = hn::BitCast(U(), hn::Add(lane, lane));
  const V64 even_block = hn::Add(all64(first), hn::MulEven(twice, hn::BitCast(U(), all64(step))));
  const V64 odd_block = hn::Add(even_block, all64(step));
  const V64 high = all64(source.sample_high), low = all64(source.sample_low),
            operation = all64(source.operation);
  PhiloxState even{even_block, hn::Or(hn::ShiftRight<32>(even_block), high), low, operation};
  PhiloxState odd{odd_block, hn::Or(hn::ShiftRight<32>(odd_block), high), low, operation};
  // Even and odd advance together: while one waits for its products, the other's are computed.
#pragma GCC unroll 10
  for (std::size_t round = 0; round < kPhiloxRounds; ++round) {
    const V64 key0 = all64(keys.of[round][0]), key1 = all64(keys.of[round][1]);
    philox_round(even, key0, key1);
    philox_round(odd, key0, key1);
  }
  PhiloxWords words;
  words.word[0] = interleave(even.a, odd.a);
  words.word[1] = interleave(even.b, odd.b);
  words.word[2] = interleave(even.c, odd.c);
  words.word[3] = interleave(even.d, odd.d);
  return words;
}

#endif

HWY_INLINE PhiloxWords philox_lanes(const RandomSource& source, std::uint64_t first,
                                    std::uint32_t step) {
  return philox_lanes(source, PhiloxKeys(source.key), first, step);
}

/// Returns `value`, or zero in lanes with words below `threshold`. (AVX2 compares signed numbers.)
HWY_INLINE V keep_lanes(V32 words, std::uint32_t threshold, V value) {
  const I d;
  const auto flip = hn::Set(d, static_cast<std::int32_t>(0x80000000u));
  const auto bound = hn::Set(d, static_cast<std::int32_t>(threshold ^ 0x80000000u));
  const auto dropped = hn::Lt(hn::Xor(hn::BitCast(d, words), flip), bound);
  return hn::IfThenZeroElse(hn::RebindMask(F(), dropped), value);
}

/// Writes words from position 4 * first_block on, 4 * kLanes * ceil(blocks / kLanes) of them.
HWY_INLINE void philox_row(const RandomSource& source, std::uint64_t first_block,
                           std::int64_t blocks, std::uint32_t* to) {
  const PhiloxKeys keys(source.key);
  for (std::int64_t i = 0; i < blocks; i += static_cast<std::int64_t>(kLanes)) {
    const PhiloxWords w =
        philox_lanes(source, keys, first_block + static_cast<std::uint64_t>(i), 1);
    hn::StoreInterleaved4(w.word[0], w.word[1], w.word[2], w.word[3], U(), to + 4 * i);
  }
}

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
