// Unpacks runs (format.h): to coefficients, or at once to samples, without coefficients in memory.
//
// Four blocks take the same few instructions a quad, for any coefficients, and no
// transposition: the inverse DCT multiplies and adds pairs of words that lie side by side. It is
// the one of transforms/jpeg/fast/pixels/inverse_dct.h, to the bit, for coefficients in its range;
// the packer has checked that. Others give unspecified samples, the same by all functions here.
//
// `run` may contain anything, and kRunReach bytes of it must be readable. Groups [from, to) of it
// are unpacked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/packed/format.h"

namespace stoker::packed {

// Writes kGroupWords words for each group, 64-byte aligned: its quads by number (not in the order
// of the run), each with the DC coefficients where they belong.
void UnpackRun(const uint8_t* run, int from, int to, int16_t* words);
void UnpackRunPlain(const uint8_t* run, int from, int to, int16_t* words);  // the reference

// A quantisation table in the order of a group's words.
struct Quantiser {
  alignas(64) std::array<int16_t, kGroupWords> factor;
};
void SetQuantiser(const std::array<uint16_t, 64>& table, Quantiser& quantiser);

// Writes 8 rows of 32 samples for each group.
void TransformRun(const uint8_t* run, int from, int to, const Quantiser& quantiser, uint8_t* out,
                  ptrdiff_t stride);
void TransformRunPlain(const uint8_t* run, int from, int to, const Quantiser& quantiser,
                       uint8_t* out, ptrdiff_t stride);  // the reference

// The same by the inverse DCT of transforms/jpeg/fast/pixels/reduced_dct.h: writes `side` (4, 2 or
// 1) rows of 4 × side samples for each group.
void ReduceRun(const uint8_t* run, int from, int to, const Quantiser& quantiser, int side,
               uint8_t* out, ptrdiff_t stride);
void ReduceRunPlain(const uint8_t* run, int from, int to, const Quantiser& quantiser, int side,
                    uint8_t* out, ptrdiff_t stride);  // the reference

}  // namespace stoker::packed
