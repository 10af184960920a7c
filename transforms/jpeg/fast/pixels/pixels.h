// Phase 6: upsamples chroma to the size of luma and converts YCbCr to RGB, one row at a time.
//
// Computes libjpeg's "fancy" upsampling and its color conversion bit-exactly. At the edges of the
// image the outermost samples count twice: callers repeat them, so that these functions need no
// edge handling.
//
// All functions may read 64 bytes past their input and write 64 bytes past their output.
#pragma once

#include <cstdint>

namespace stoker::jpeg {

// 2 × 1: out[2i] is ¾ row[i] + ¼ row[i-1], out[2i+1] is ¾ row[i] + ¼ row[i+1].
void UpsampleColumns(const uint8_t* row, int samples, uint8_t* out);

// 1 × 2: ¾ near + ¼ far, where far is the row above (`below` false) or below the nearer one.
void UpsampleRows(const uint8_t* near, const uint8_t* far, bool below, int samples, uint8_t* out);

// 2 × 2: both combined, rounded once.
void UpsampleBoth(const uint8_t* near, const uint8_t* far, int samples, uint8_t* out);

// One pixel per sample: JFIF's conversion, with 16-bit constants.
struct YccRow {
  const uint8_t* y;
  const uint8_t* cb;
  const uint8_t* cr;
};
struct RgbRow {
  uint8_t* r;
  uint8_t* g;
  uint8_t* b;
};
void ConvertToRgb(const YccRow& from, int pixels, const RgbRow& to);

// The same to RGBRGB…; writes nothing past the last pixel.
void ConvertToInterleaved(const YccRow& from, int pixels, uint8_t* to);

// The references. They read and write no more than they need.
void UpsampleColumnsPlain(const uint8_t* row, int samples, uint8_t* out);
void UpsampleRowsPlain(const uint8_t* near, const uint8_t* far, bool below, int samples,
                       uint8_t* out);
void UpsampleBothPlain(const uint8_t* near, const uint8_t* far, int samples, uint8_t* out);
void ConvertToRgbPlain(const YccRow& from, int pixels, const RgbRow& to);
void ConvertToInterleavedPlain(const YccRow& from, int pixels, uint8_t* to);

}  // namespace stoker::jpeg
