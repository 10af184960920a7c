// The kinds of JPEG that the fast decoder supports.
#pragma once

#include <vector>

#include "tests/testing/images/make_jpeg.h"

namespace stoker::testing {

struct FastJpeg {
  const char* name;
  JpegColor color;
  std::vector<Sampling> sampling;
};

inline const std::vector<FastJpeg>& FastJpegs() {
  static const std::vector<FastJpeg> kinds = {
      {"444", JpegColor::kYCbCr, Luma(1, 1)},  {"422", JpegColor::kYCbCr, Luma(2, 1)},
      {"420", JpegColor::kYCbCr, Luma(2, 2)},  {"440", JpegColor::kYCbCr, Luma(1, 2)},
      {"Gray", JpegColor::kGray, {}},          {"Gray12", JpegColor::kGray, Luma(1, 2)},
      {"Gray22", JpegColor::kGray, Luma(2, 2)}};
  return kinds;
}

}  // namespace stoker::testing
