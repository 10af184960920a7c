#include "io/shards/shard_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/testing/samples/make_tar.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> Expanded(std::string_view pattern) {
  Result<std::vector<std::string>> paths = ExpandShards(pattern);
  EXPECT_TRUE(paths.ok()) << pattern << ": " << paths.error().Message();
  return paths.ok() ? *std::move(paths) : std::vector<std::string>();
}

Error Refused(std::string_view pattern) {
  const Result<std::vector<std::string>> paths = ExpandShards(pattern);
  EXPECT_FALSE(paths.ok()) << pattern;
  return paths.ok() ? Error{} : paths.error();
}

TEST(ShardPattern, LeavesOutIndexFilesOfEarlierVersions) {
  const testing::TempFolder folder;
  for (const char* name : {"t-0", "t-0.stoker-index", "t-0.txt.stoker-index"}) {
    folder.Write(name, "x");
  }
  const std::string shard = folder.Path("t-0");
  EXPECT_THAT(Expanded(folder.Path("t-*")), ElementsAre(shard));
  EXPECT_THAT(Expanded(folder.Path("t-0{.stoker-index,}")), ElementsAre(shard)) << "a list's";
  EXPECT_EQ(Refused(folder.Path("*index")).code, Code::kNotFound);
}

// The examples of the Python package braceexpand 0.1.7, and its results for others.
TEST(ShardPattern, ExpandsBracesAsBraceexpand) {
  EXPECT_THAT(Expanded("s-{000..002}.tar"), ElementsAre("s-000.tar", "s-001.tar", "s-002.tar"));
  EXPECT_THAT(Expanded("{07..10}"), ElementsAre("07", "08", "09", "10"));
  EXPECT_THAT(Expanded("{4..1}"), ElementsAre("4", "3", "2", "1"));
  EXPECT_THAT(Expanded("{2..-1}"), ElementsAre("2", "1", "0", "-1"));
  EXPECT_THAT(Expanded("{-01..1}"), ElementsAre("-01", "000", "001"));
  EXPECT_THAT(Expanded("{0..10..4}"), ElementsAre("0", "4", "8"));
  EXPECT_THAT(Expanded("{10..0..-4}"), ElementsAre("10", "6", "2"));
  EXPECT_THAT(Expanded("{1..3..0}"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(Expanded("{3..3}"), ElementsAre("3"));
  EXPECT_THAT(Expanded("{a..g..2}"), ElementsAre("a", "c", "e", "g"));
  EXPECT_THAT(Expanded("{Y..b}"), ElementsAre("Y", "Z", "a", "b"));
  EXPECT_THAT(Expanded("{C..A}"), ElementsAre("C", "B", "A"));
  EXPECT_THAT(Expanded("{a,b}{1,2}"), ElementsAre("a1", "a2", "b1", "b2"));
  EXPECT_THAT(Expanded("index.html{,.backup}"), ElementsAre("index.html", "index.html.backup"));
  EXPECT_THAT(Expanded("{b,a,b}"), ElementsAre("b", "a", "b"));
  EXPECT_THAT(Expanded(R"({1\{2,3})"), ElementsAre("1{2", "3"));
  EXPECT_THAT(Expanded(R"({a\,b,c})"), ElementsAre("a,b", "c"));
  EXPECT_THAT(Expanded("{a}{}{1,2}"), ElementsAre("{a}{}1", "{a}{}2"));
  EXPECT_THAT(Expanded("{1..b}{1..}{1..2..}"), ElementsAre("{1..b}{1..}{1..2..}"));
  EXPECT_THAT(Expanded("plain.tar"), ElementsAre("plain.tar"));
}

TEST(ShardPattern, TakesSeveralPatterns) {
  EXPECT_THAT(Expanded("a{0..1}.tar::/b:c.tar"), ElementsAre("a0.tar", "a1.tar", "/b:c.tar"));
  EXPECT_THAT(Expanded(R"(a\::b)"), ElementsAre("a::b"));
}

TEST(ShardPattern, RefusesBadPatterns) {
  for (const char* pattern : {"{1", "a}", "a}{b", "{", "{a,b}}"}) {
    EXPECT_THAT(Refused(pattern).cause, HasSubstr("unmatched brace")) << pattern;
  }
  EXPECT_THAT(Refused("").cause, HasSubstr("is empty"));
  EXPECT_THAT(Refused("a::").cause, HasSubstr("empty path"));
  EXPECT_THAT(Refused("a{,b}::{,c}").cause, HasSubstr("empty path"));
  EXPECT_THAT(Refused({"a\0b", 3}).cause, HasSubstr("NUL"));
  for (const char* pattern : {"{a{1,2},b}", "{{1,2}}", "{1{2,3}", "{{"}) {
    EXPECT_THAT(Refused(pattern).cause, HasSubstr("braces within braces")) << pattern;
    EXPECT_THAT(Refused(pattern).advice, HasSubstr("joined by ::"));
  }
  for (const char* pattern :
       {"{1..1048577}", "{0..999999999999999999}", "{-99999999999999999..99999999999999999}",
        "{0..1023}{0..1024}", "{0..1048575}::a"}) {
    const Error error = Refused(pattern);
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_THAT(error.cause, HasSubstr("more than 1048576 paths")) << pattern;
  }
  EXPECT_THAT(Refused("{0..1048575}" + std::string(1000, 'x')).cause, HasSubstr("128 MiB"));
  std::string large;
  for (int i = 0; i < 1000; ++i) large += "{0..1000000}";  // each alone would be allowed
  EXPECT_THAT(Refused(large).cause, HasSubstr("more than"));
  const std::string many = "{0..99}" + std::string(1 << 20, 'x');  // 100 MiB
  EXPECT_THAT(Refused(many + "::" + many).cause, HasSubstr("128 MiB"));
  EXPECT_THAT(Refused("{1..9999999999999999999}").cause, HasSubstr("18 digits"));
  EXPECT_THAT(Refused("{1..9..9999999999999999999}").cause, HasSubstr("18 digits"));
  std::string doubling;
  for (int i = 0; i < 10'000; ++i) doubling += "{,}";
  EXPECT_THAT(Refused("x" + doubling).cause, HasSubstr("more than"));
}

TEST(ShardPattern, AllowsTheMostPaths) {
  EXPECT_THAT(Expanded("{0..1048575}"), SizeIs(kMaxShards));
  EXPECT_THAT(Expanded("a{0..1023}{0..1023}"), SizeIs(kMaxShards));
}

TEST(ShardPattern, FindsFilesByWildcards) {
  const testing::TempFolder folder;
  for (const char* name : {"b-10.tar", "b-9.tar", "a*.tar", "a.tar", ".hidden.tar", "c.tgz",
                           "one/x.tar", "two/x.tar", "two/y.tar"}) {
    folder.Write(name, "");
  }
  const auto found = [&folder](const std::string& pattern) {
    std::vector<std::string> names = Expanded(QuoteShard(folder.path()) + pattern);
    for (std::string& name : names) name.erase(0, folder.path().size());
    return names;
  };
  EXPECT_THAT(found("/*.tar"), ElementsAre("/a*.tar", "/a.tar", "/b-10.tar", "/b-9.tar"));
  EXPECT_THAT(found("/b-?.tar"), ElementsAre("/b-9.tar"));
  EXPECT_THAT(found("/.*.tar"), ElementsAre("/.hidden.tar"));
  EXPECT_THAT(found(R"(/a\**)"), ElementsAre("/a*.tar"));
  EXPECT_THAT(found("/*/x.tar"), ElementsAre("/one/x.tar", "/two/x.tar"));
  EXPECT_THAT(found("/{two,one}/*"), ElementsAre("/two/x.tar", "/two/y.tar", "/one/x.tar"));
  EXPECT_THAT(found("//t*//y.tar"), ElementsAre("//two//y.tar"));
  for (const char* pattern : {"/*.zip", "/c.tgz/*", "/three/*", "/*/z.tar"}) {
    const Error error = Refused(folder.path() + pattern);
    EXPECT_EQ(error.code, Code::kNotFound) << pattern;
  }
  EXPECT_EQ(found("/" + QuoteShard("a*.tar")), std::vector<std::string>{"/a*.tar"});
}

TEST(ShardPattern, FindsAllFilesOrFails) {
  const testing::TempFolder folder;
  folder.Write("one/x.tar", "");
  std::filesystem::create_symlink("nothing", folder.path() + "/dangling");
  EXPECT_THAT(Expanded(folder.path() + "/*/x.tar"), SizeIs(1));
  EXPECT_THAT(Expanded(folder.path() + "/*/*.tar"), SizeIs(1));
  std::filesystem::create_symlink("loop", folder.path() + "/loop");  // ELOOP, for root too
  EXPECT_THAT(Refused(folder.path() + "/*/x.tar").cause, HasSubstr("cannot look for the file"));
  const Error error = Refused(folder.path() + "/*/*.tar");
  EXPECT_THAT(error.cause, HasSubstr("cannot list the folder"));
  EXPECT_EQ(error.file, folder.path() + "/loop/");
}

TEST(ShardPattern, PutsRelativePathsIntoTheRoot) {
  const testing::TempFolder folder;
  const std::string root = folder.path() + "/{r,s}*";
  folder.Write("{r,s}*/1.tar", "");
  folder.Write("{r,s}*/2.tar", "");
  EXPECT_THAT(
      ExpandShards("{/a,b}/{1,2}.tar::c.tar", root).value(),
      ElementsAre("/a/1.tar", "/a/2.tar", root + "/b/1.tar", root + "/b/2.tar", root + "/c.tar"));
  EXPECT_THAT(ExpandShards("*.tar", root).value(), ElementsAre(root + "/1.tar", root + "/2.tar"));
  EXPECT_THAT(ExpandShards(R"({/a,\/b}::/c)", "").value(), ElementsAre("/a", "/b", "/c"));
  for (const char* pattern : {"/a::b", "{/a,b}", "*", "./a"}) {
    const Result<std::vector<std::string>> paths = ExpandShards(pattern, "");
    ASSERT_FALSE(paths.ok()) << pattern;
    EXPECT_EQ(paths.error().code, Code::kInvalidArgument);
    EXPECT_THAT(paths.error().cause, HasSubstr("relative path"));
  }
}

TEST(ShardPattern, RefusesWhatIsNoFileHere) {
  for (const char* pattern :
       {"hdfs://host/{0..9}.tar", "a::ftp://b/0.tar", "{abfs://,/a/}b", "pipe:cat 0.tar"}) {
    const Error error = Refused(pattern);
    EXPECT_EQ(error.code, Code::kUnimplemented) << pattern;
    EXPECT_THAT(error.advice, HasSubstr("Give paths, or URLs"));
  }
  for (const char* pattern : {"~/a.tar", "~me/a.tar", "/b::{~,c}/a.tar"}) {
    const Error error = Refused(pattern);
    EXPECT_EQ(error.code, Code::kInvalidArgument) << pattern;
    EXPECT_THAT(error.cause, HasSubstr("only shells"));
  }
  EXPECT_THAT(Expanded("./~/a::~a::a:b.tar::/a://b::./pipe:c::://d::1a://"),
              ElementsAre("./~/a", "~a", "a:b.tar", "/a://b", "./pipe:c", "://d", "1a://"));
}

TEST(ShardPattern, TakesUrlsOfObjects) {
  EXPECT_THAT(
      ExpandShards(R"(s3://b/{0..1}.tar::https://h/x.tar?a=b&c::gs://b/\*::/a)", "").value(),
      ElementsAre("s3://b/0.tar", "s3://b/1.tar", "https://h/x.tar?a=b&c", "gs://b/*", "/a"));
  EXPECT_THAT(ExpandShards("{http://h,data}/x", "/root").value(),
              ElementsAre("http://h/x", "/root/data/x"));
  EXPECT_THAT(ExpandShards("a b#{0,?}.tar", "https://h/d").value(),
              ElementsAre("https://h/d/a%20b%230.tar", "https://h/d/a%20b%23%3F.tar"));
  EXPECT_THAT(ExpandShards("a b#{0,?}.tar", "s3://h/d").value(),
              ElementsAre("s3://h/d/a b#0.tar", "s3://h/d/a b#?.tar"));
  EXPECT_EQ(ExpandShards("*.tar", "https://h/d").error().code, Code::kUnimplemented);
  for (const char* const root : {"https://h/d?sig=x", "http://h/d#x"}) {
    EXPECT_EQ(ExpandShards("a.tar", root).error().code, Code::kInvalidArgument) << root;
    EXPECT_THAT(ExpandShards("https://h/a.tar::/b", root).value(),
                ElementsAre("https://h/a.tar", "/b"));
  }
  const Error error = Refused("s3://b/*.tar");
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_THAT(error.cause, HasSubstr("objects are not listed"));
}

TEST(ShardPattern, QuotedPathsStandForThemselves) {
  for (const std::string path : {R"(a\b{c,d}*?::e.tar)", "::", R"(\)", "plain"}) {
    EXPECT_THAT(Expanded(QuoteShard(path)), ElementsAre(path));
  }
}

// The reference: tries everything that a star may stand for.
bool MatchesByTrying(std::string_view name, std::string_view wildcards) {
  if (wildcards.empty()) return name.empty();
  if (wildcards[0] == '*') {
    for (size_t skipped = 0; skipped <= name.size(); ++skipped) {
      if (MatchesByTrying(name.substr(skipped), wildcards.substr(1))) return true;
    }
    return false;
  }
  if (name.empty()) return false;
  if (wildcards[0] == '\\' && wildcards.size() > 1) {
    return name[0] == wildcards[1] && MatchesByTrying(name.substr(1), wildcards.substr(2));
  }
  return (wildcards[0] == '?' || wildcards[0] == name[0]) &&
         MatchesByTrying(name.substr(1), wildcards.substr(1));
}

TEST(ShardPattern, WildcardsMatchAsTheSlowReferenceDoes) {
  std::mt19937 random(1);
  const auto text = [&random](std::string_view letters, size_t longest) {
    std::string made(random() % (longest + 1), ' ');
    for (char& c : made) c = letters[random() % letters.size()];
    return made;
  };
  int matched = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string name = text("ab*\\", 8), wildcards = text("ab**?\\", 7);
    ASSERT_EQ(MatchesWildcards(name, wildcards), MatchesByTrying(name, wildcards))
        << name << " " << wildcards;
    matched += MatchesWildcards(name, wildcards) ? 1 : 0;
  }
  EXPECT_GT(matched, 1000);
  EXPECT_FALSE(MatchesWildcards(std::string(10'000, 'a'), "*a*a*a*a*a*a*a*a*a*a*a*a*b"));
}

}  // namespace
}  // namespace stoker
