// The work of one thread of the kernel, on a group of pixels, or on one pixel if they are not
// aligned for groups; and the choice of a job's kernel variant. (deferred_ops_value-inl.h has the
// arithmetic and defines Machine.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gpu/ops/deferred_ops_group-inl.h"
#include "gpu/ops/deferred_ops_value-inl.h"

namespace stoker::deferred {

// Whether the job can be done in groups: the lines are whole groups, and all addresses are aligned.
// Without lines to flip or to erase in, an image is one line.
template <DType kType>
bool InGroups(const DeferredOpsJob& job) {
  const uint32_t line = job.work == nullptr ? PixelsOf(job) : static_cast<uint32_t>(job.width);
  return line % kGroup<kType> == 0 && reinterpret_cast<uintptr_t>(job.from) % kGroup<kType> == 0 &&
         reinterpret_cast<uintptr_t>(job.to) % 16 == 0;
}

// ---- One pixel.

template <class Machine, DType kType, Layout kLayout, Extent kExtent>
constexpr void ApplyDeferredToPixel(const DeferredOpsJob& job, int64_t row, uint32_t pixel) {
  const Spot spot = SpotOf(job, pixel);
  const size_t pixels = PixelsOf(job), r = static_cast<size_t>(row);
  for (int c = 0; c < 3; ++c) {
    const size_t plane = 3 * r + static_cast<size_t>(c);
    const size_t at = kLayout == Layout::kNhwc ? 3 * (r * pixels + pixel) + static_cast<size_t>(c)
                                               : plane * pixels + pixel;
    Machine::Put(
        static_cast<uint8_t*>(job.to) + at * SizeOf(kType),
        static_cast<BitsOf<kType>>(OutputBits<Machine, kType, kExtent>(job, row, c, spot)));
  }
}

// The source of a group's values: its row, the previous row, or both. kPixels: the group is
// processed pixel by pixel.
enum class GroupSource { kOwn, kBefore, kBoth, kPixels };

template <class Machine, Extent kExtent>
constexpr GroupSource GroupSourceOf(const DeferredOpsJob& job, int64_t row, Spot spot,
                                    int32_t count) {
  if constexpr (kExtent == Extent::kConverts) return GroupSource::kOwn;
  const DeferredOps& work = WorkOf<Machine>(job, row);
  bool own = true, before = false;
  if constexpr (kExtent == Extent::kMixes) {
    const int32_t cut = work.mixing == RowMixing::kCut ? CountIn(work.cut, spot, count) : 0;
    if (cut != 0 && cut != count) return GroupSource::kPixels;
    own = cut == 0;
    before = cut != 0 || work.mixing == RowMixing::kBlend;
  }
  if (own && IsErased<Machine>(job, row, spot, count)) return GroupSource::kPixels;
  if (!before) return GroupSource::kOwn;
  if (IsErased<Machine>(job, RowBefore(job, row), spot, count)) return GroupSource::kPixels;
  return own ? GroupSource::kBoth : GroupSource::kBefore;
}

template <class Machine, DType kType, Layout kLayout, Extent kExtent>
constexpr void ApplyDeferredToGroup(const DeferredOpsJob& job, int64_t row, uint32_t group) {
  const uint32_t pixel = group * kGroup<kType>;
  GroupSource from = GroupSource::kOwn;
  if constexpr (kExtent != Extent::kConverts) {
    from = GroupSourceOf<Machine, kExtent>(job, row, SpotOf(job, pixel), kGroup<kType>);
    if (from == GroupSource::kPixels) {
      for (uint32_t i = 0; i < kGroup<kType>; ++i) {
        ApplyDeferredToPixel<Machine, kType, kLayout, kExtent>(job, row, pixel + i);
      }
      return;
    }
  }
  const int64_t source = from == GroupSource::kBefore ? RowBefore(job, row) : row;
  GroupValues values = ConvertedGroup<Machine, kType, kLayout>(job, source, group);
  if constexpr (kExtent == Extent::kMixes) {
    if (from == GroupSource::kBoth) {
      Blend<Machine, kType>(
          values, ConvertedGroup<Machine, kType, kLayout>(job, RowBefore(job, row), group),
          WorkOf<Machine>(job, row));
    }
  }
  const size_t pixels = PixelsOf(job), first = static_cast<size_t>(row) * 3 * pixels;
  uint8_t* const to = static_cast<uint8_t*>(job.to) + first * SizeOf(kType);
  if constexpr (kLayout == Layout::kNhwc) {
    Machine::StoreParts(to + size_t{group} * sizeof(values), values.words);
  } else {
    for (uint32_t plane = 0; plane < 3; ++plane) {
      Machine::Store(to + (plane * pixels + pixel) * SizeOf(kType), values.words[plane]);
    }
  }
}

// ---- The kernel variant of a job.

template <auto kValue>
using Constant = std::integral_constant<decltype(kValue), kValue>;

// Calls call(type, layout, extent) with the constants that a kernel is compiled for.
template <typename Call>
auto WithKernel(DType dtype, Layout layout, Extent extent, const Call& call) {
  const auto with_extent = [&](auto t, auto l) {
    switch (extent) {
      case Extent::kMixes:
        return call(t, l, Constant<Extent::kMixes>());
      case Extent::kErases:
        return call(t, l, Constant<Extent::kErases>());
      default:
        return call(t, l, Constant<Extent::kConverts>());
    }
  };
  const auto with_layout = [&](auto t) {
    if (layout == Layout::kNchw) return with_extent(t, Constant<Layout::kNchw>());
    return with_extent(t, Constant<Layout::kNhwc>());
  };
  switch (dtype) {
    case DType::kF32:
      return with_layout(Constant<DType::kF32>());
    case DType::kF16:
      return with_layout(Constant<DType::kF16>());
    case DType::kBF16:
      return with_layout(Constant<DType::kBF16>());
    default:
      return with_layout(Constant<DType::kU8>());
  }
}

}  // namespace stoker::deferred
