// .npy files, sound and unsound.
#include "io/memory/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/sample_fault.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const uint8_t> BytesOf(const std::string& file) {
  return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

std::string Npy(const std::string& header, const std::string& data = std::string(16, 0),
                char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    file += static_cast<char>(header.size() >> (8 * i));
  }
  return file + header + data;
}

std::string Header(const std::string& type, const std::string& shape,
                   const std::string& order = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }   \n";
}

TEST(Npy, HeadersOfAllVersionsAndForms) {
  for (const char version : {1, 2, 3}) {
    const std::string file = Npy(Header("<f4", "(2, 3)"), "", version);
    const NpyHeader header = ParseNpyHeader(BytesOf(file)).value();
    EXPECT_EQ(header.dtype, DType::kF32);
    EXPECT_THAT(header.shape(), ElementsAre(2, 3));
    EXPECT_EQ(header.data_begin, file.size());
  }
  for (const char* text : {"{\"shape\":(4,),\"descr\":\"<f4\",\"fortran_order\":False}",
                           "{'descr':'=f4','shape':( 4 , ),'fortran_order':True}\n"}) {
    EXPECT_THAT(ParseNpyHeader(BytesOf(Npy(text))).value().shape(), ElementsAre(4)) << text;
  }
  EXPECT_EQ(ParseNpyHeader(BytesOf(Npy(Header("|b1", "()")))).value().shape().size(), 0U);
  EXPECT_EQ(ParseNpyHeader(BytesOf(Npy(Header(">u1", "(1,)")))).value().dtype, DType::kU8);
}

TEST(Npy, WhatIsRefusedSaysWhy) {
  struct Case {
    std::string file;
    SampleFault fault;
    const char* words;
  };
  const std::string good = Npy(Header("<f4", "(4,)"));
  const auto shape = [](const char* text) { return Npy(Header("<f4", text)); };
  using enum SampleFault;
  const std::vector<Case> cases = {
      {Npy(Header("|O", "(4,)")), kUnsupported, "Python objects"},
      {Npy(Header("O8", "(4,)")), kUnsupported, "elements of type"},
      {Npy(Header("<U4", "(4,)")), kUnsupported, "elements of type '<U4'"},
      {Npy(Header("|V2", "(4,)")), kUnsupported, "elements of type"},
      {Npy(Header("<c8", "(4,)")), kUnsupported, "elements of type"},
      {Npy(Header(">f4", "(4,)")), kUnsupported, "big-endian"},
      {Npy(Header("!f4", "(4,)")), kUndecodable, "descr is '!f4'"},
      {Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}"), kUnsupported,
       "several fields"},
      {Npy(Header("<f4", "(2, 2)", "True")), kUnsupported, "Fortran order"},
      {Npy(Header("<f4", "(4,)", "0")), kUndecodable, "neither True nor False"},
      {shape("(1, 1, 1, 1, 1, 1, 1, 1)"), kUnsupported, "more than seven dimensions"},
      {shape("(0, 4)"), kUnsupported, "no elements"},
      {shape("(-4,)"), kUndecodable, "not a tuple of integers"},
      {shape("(4)"), kUndecodable, "not a tuple"},
      {shape("[4]"), kUndecodable, "not a tuple"},
      {shape("(4 4)"), kUndecodable, "not a tuple of integers"},
      {shape("(99999999999999999999,)"), kUndecodable, "not a tuple of integers"},
      {shape("(9223372036854775807, 3)"), kUndecodable, "more elements than any memory"},
      {Npy("{'descr': '<f4', 'shape': (4,)}"), kUndecodable, "does not have the keys"},
      {Npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}"), kUndecodable,
       "'descr', which is unknown or there twice"},
      {Npy("{'a\tb': 1}"), kUndecodable, "which is unknown"},
      {Npy("{'descr': '<f\\x34', 'fortran_order': False, 'shape': (4,)}"), kUndecodable,
       "descr is not a type"},
      {Npy("__import__('os').abort()"), kUndecodable, "does not begin with a dictionary"},
      {Npy(Header("<f4", "(4,)") + "+ 1"), kUndecodable, "something follows its dictionary"},
      {Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,"), kUndecodable, "header"},
      {Npy(Header("<f4", "(4,)") + std::string(10000, ' '), "", 2), kUndecodable, "length is"},
      {Npy(Header("<f4", "(4,)"), "", 4), kUnsupported, "version 4.0"},
      {"GIF89a" + good, kUndecodable, "not an .npy file"},
      {"", kTruncated, "cut off"},
      {good.substr(0, 3), kTruncated, "cut off"},
      {good.substr(0, 9), kTruncated, "cut off"},
      {good.substr(0, 40), kTruncated, "cut off"},
  };
  for (const Case& one : cases) {
    const Result<NpyHeader> header = ParseNpyHeader(BytesOf(one.file));
    ASSERT_FALSE(header.ok()) << one.words;
    EXPECT_THAT(header.error().cause, HasSubstr(one.words));
    EXPECT_EQ(FaultOf(header.error()), one.fault) << header.error().cause;
    EXPECT_LE(header.error().offset.value(), one.file.size());
    EXPECT_NE(header.error().advice, "") << one.words;
  }
}

TEST(Npy, ArraysAreTheFieldsOrErrors) {
  const Field field{.name = "a", .dtype = DType::kF32, .row_shape = {2, 2}};
  std::vector<uint8_t> row(16);
  const std::string data = "abcdefghijklmnop";
  ASSERT_TRUE(CopyNpy(BytesOf(Npy(Header("<f4", "(2, 2)"), data)), field, row).ok());
  EXPECT_EQ(std::memcmp(row.data(), data.data(), row.size()), 0);
  const auto error = [&](const std::string& file) {
    return CopyNpy(BytesOf(file), field, row).error();
  };
  EXPECT_THAT(error(Npy(Header("<f4", "(4,)"))).cause,
              HasSubstr("is float32 (4), and that of the first sample float32 (2, 2)"));
  EXPECT_THAT(error(Npy(Header("<f4", "(4,)"))).advice, HasSubstr("one type and shape"));
  EXPECT_EQ(error(Npy(Header("<f4", "(4,)"))).code, Code::kUnimplemented);
  EXPECT_THAT(error(Npy(Header("<i4", "(2, 2)"))).cause, HasSubstr("is int32 (2, 2)"));
  EXPECT_THAT(error(Npy(Header("<f4", "(2, 2)"), data + "q")).cause, HasSubstr("1 byte follows"));
  const Error cut = error(Npy(Header("<f4", "(2, 2)"), data.substr(1)));
  EXPECT_THAT(cut.cause, HasSubstr("15 of its 16 bytes"));
  EXPECT_EQ(FaultOf(cut), SampleFault::kTruncated);
  const Field bools{.name = "b", .dtype = DType::kBool, .row_shape = {2}};
  EXPECT_FALSE(
      CopyNpy(BytesOf(Npy(Header("|b1", "(2,)"), "\1\2")), bools, std::span(row).first(2)).ok());
}

}  // namespace
}  // namespace stoker
