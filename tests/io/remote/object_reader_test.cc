// Reads objects from a server that works correctly, or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "io/cache/disk_cache.h"
#include "io/remote/object_fetcher.h"
#include "io/remote/object_file.h"
#include "io/remote/object_reader.h"
#include "tests/testing/storage/object_server.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::stoker::testing::ObjectServer;
using ::stoker::testing::TempFolder;
using ::testing::HasSubstr;

std::string Noise(size_t bytes) {
  std::mt19937 random(5);
  std::string noise(bytes, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  return noise;
}

std::string BytesOf(const ReadRequest& request) {
  return {reinterpret_cast<const char*>(request.buffer.data()), request.size};
}

// Returns a fetch of as many bytes as there is room for.
ObjectFetch FetchOf(const std::string& url, std::span<uint8_t> to, uint64_t offset = 0) {
  ObjectFetch fetch;
  fetch.url = url;
  fetch.offset = offset;
  fetch.length = to.size();
  fetch.to = to;
  return fetch;
}

ObjectSettings Impatient() {
  ObjectSettings settings;
  settings.tries = 3;
  settings.first_retry_ms = 1;
  settings.stall_timeout_s = 1;
  return settings;
}

class ObjectReads : public ::testing::Test {
 protected:
  std::vector<ReadRequest> Requests(const std::string& url, size_t count, uint64_t length) {
    std::vector<ReadRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      requests[i].path = url;
      requests[i].offset = i * length;
      requests[i].length = length;
      requests[i].buffer = GrowingBuffer(budget_);
      requests[i].owner = this;
    }
    return requests;
  }

  // Reads all requests, as many at a time as the reader takes.
  static void ReadAll(Reader& reader, std::vector<ReadRequest>& requests) {
    std::vector<ReadRequest*> all;
    for (ReadRequest& request : requests) all.push_back(&request);
    std::span<ReadRequest*> left(all);
    std::vector<ReadRequest*> done(reader.capacity());
    std::set<ReadRequest*> seen;
    while (seen.size() < requests.size()) {
      left = left.subspan(reader.Submit(left));
      ASSERT_LE(reader.in_flight(), reader.capacity());
      const size_t count = reader.Reap(done, /*wait=*/true);
      for (size_t i = 0; i < count; ++i) EXPECT_TRUE(seen.insert(done[i]).second);
    }
    EXPECT_EQ(reader.in_flight(), 0);
  }

  const std::string object_ = Noise(300'000);
  MemoryBudget budget_{64 << 20};
};

TEST_F(ObjectReads, AreTheObjectsRanges) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
  const ObjectVersions versions;
  const auto reader = MakeObjectReader(7, versions).value();
  std::vector<ReadRequest> requests = Requests(server.url() + "/x", 100, 3000);
  ReadAll(*reader, requests);
  for (const ReadRequest& request : requests) {
    ASSERT_TRUE(request.status.ok()) << request.status.error().ToString();
    ASSERT_EQ(BytesOf(request), object_.substr(request.offset, 3000));
  }
  EXPECT_EQ(server.requests(), 100);
}

TEST_F(ObjectReads, AreTriedAgain) {
  const ObjectServer server([&](const ObjectServer::Get& get) -> std::string {
    if (get.number % 3 == 0) return "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n";
    std::string response = ObjectServer::Part(object_, get);
    if (get.number % 3 == 2) return response;
    response.resize(response.size() - 1);
    return response.insert(response.find("ETag"), "Connection: close\r\n");
  });
  ObjectSettings settings = Impatient();
  settings.tries = 50;
  const auto fetcher = ObjectFetcher::Make(4, settings).value();
  std::vector<uint8_t> to(3000);
  for (uint64_t i = 0; i < 20; ++i) {
    ObjectFetch fetch = FetchOf(server.url() + "/x", to, i * to.size());
    const Status status = FetchObject(*fetcher, fetch);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    ASSERT_EQ(fetch.version.bytes, object_.size());
    ASSERT_EQ(std::string(to.begin(), to.end()), object_.substr(fetch.offset, to.size()));
  }
  EXPECT_EQ(server.requests(), 60);
}

// S3 answers some transient failures with 400.
TEST_F(ObjectReads, AreTriedAgainAsTheCodeOfS3Says) {
  const std::string timeout = "<Error><Code>RequestTimeout</Code></Error>";
  const std::string skewed = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
  const auto answer = [](const std::string& status, const std::string& body) {
    return "HTTP/1.1 " + status + " No\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  };
  const ObjectServer server([&](const ObjectServer::Get& get) {
    return get.number < 2 ? answer("400", timeout) : answer("403", skewed);
  });
  const auto fetcher = ObjectFetcher::Make(1, Impatient()).value();
  std::vector<uint8_t> to(10);
  ObjectFetch fetch = FetchOf(server.url() + "/x", to);
  const Error error = FetchObject(*fetcher, fetch).error();
  EXPECT_EQ(server.requests(), 3);
  EXPECT_EQ(error.code, Code::kPermissionDenied);
  EXPECT_THAT(error.advice, HasSubstr("clock"));
}

TEST_F(ObjectReads, ThatAreCompressedFail) {
  const ObjectServer server([&](const ObjectServer::Get& /*get*/) {
    return std::string("HTTP/1.1 200 K\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd");
  });
  const auto fetcher = ObjectFetcher::Make(1, Impatient()).value();
  std::vector<uint8_t> to(10);
  ObjectFetch fetch;
  fetch.url = server.url() + "/x";
  fetch.to = to;
  const Error error = FetchObject(*fetcher, fetch).error();
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_THAT(error.cause, HasSubstr("gzip"));
}

TEST_F(ObjectReads, FailAfterTheLastTry) {
  const ObjectServer server([](const ObjectServer::Get& /*get*/) {
    return std::string("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
  });
  const auto fetcher = ObjectFetcher::Make(4, Impatient()).value();
  std::vector<uint8_t> to(10);
  ObjectFetch fetch = FetchOf(server.url() + "/x?signature=secret", to, 5);
  const Error error = FetchObject(*fetcher, fetch).error();
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.ToString(), HasSubstr(server.url() + "/x?… at byte 5: the server answers 500"));
  EXPECT_EQ(server.requests(), 3);
}

// A response that is hostile or wrong ends as an error.
TEST_F(ObjectReads, OfWrongResponsesFail) {
  for (const char* const response :
       {"HTTP/1.1 206 P\r\n\r\n", "HTTP/1.1 206 P\r\nContent-Length: 10\r\n\r\n0123456789",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 5-14/100\r\nContent-Length: 9\r\n\r\n012345678",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 5-13/100\r\nContent-Length: 9\r\n\r\n012345678",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 5-18446744073709551615/*\r\n\r\n0123456789",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 5-14/100\r\n\r\n0123456789012345",
        "HTTP/1.1 200 K\r\nContent-Length: 100\r\n\r\n0123456789", "HTTP/1.1 999 X\r\n\r\n",
        "HTTP/1.1 302 F\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
        "\x16\x03\x01 no HTTP at all\r\n\r\n"}) {
    const std::string text = response;
    const ObjectServer server([&](const ObjectServer::Get& /*get*/) {
      const size_t line = text.find("\r\n");
      std::string closing = text;
      return line == std::string::npos ? closing
                                       : closing.insert(line + 2, "Connection: close\r\n");
    });
    const auto fetcher = ObjectFetcher::Make(1, Impatient()).value();
    std::vector<uint8_t> to(10);
    ObjectFetch fetch = FetchOf(server.url() + "/x", to, 5);
    EXPECT_FALSE(FetchObject(*fetcher, fetch).ok()) << text;
    EXPECT_EQ(fetch.size, 0);
  }
}

TEST_F(ObjectReads, ThatHaveNoMemoryFail) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
  const ObjectVersions versions;
  const auto reader = MakeObjectReader(2, versions).value();
  MemoryBudget small(64 << 10);
  std::vector<ReadRequest> requests = Requests(server.url() + "/x", 1, 200'000);
  requests[0].buffer = GrowingBuffer(small);
  ReadAll(*reader, requests);
  ASSERT_FALSE(requests[0].status.ok());
  EXPECT_EQ(requests[0].status.error().code, Code::kResourceExhausted);
  EXPECT_GT(requests[0].status.error().wanted_bytes, 0);
  EXPECT_EQ(small.used(), 0);
}

TEST_F(ObjectReads, AreGivenUp) {
  std::promise<void> ended;
  const std::shared_future<void> until(ended.get_future());
  std::atomic<int> hanging{0};
  const ObjectServer server([&](const ObjectServer::Get& /*get*/) {
    hanging.fetch_add(1);
    until.wait();
    return std::string("Connection: close");
  });
  const ObjectVersions versions;
  const auto reader = MakeObjectReader(4, versions).value();
  std::vector<ReadRequest> requests = Requests(server.url() + "/x", 4, 10);
  requests[3].owner = nullptr;
  std::vector<ReadRequest*> all;
  for (ReadRequest& request : requests) all.push_back(&request);
  reader->Submit(all);
  std::vector<ReadRequest*> done(4);
  while (hanging < 4) EXPECT_EQ(reader->Reap(done, /*wait=*/true), 0);
  reader->GiveUp(this);
  EXPECT_EQ(reader->Reap(done, /*wait=*/true), 3);
  for (const ReadRequest* const request : std::span(done).first(3)) {
    EXPECT_EQ(request->status.error().code, Code::kCancelled);
  }
  EXPECT_EQ(reader->in_flight(), 1);
  ended.set_value();
}

TEST_F(ObjectReads, OfAnotherVersionFail) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
  ObjectVersions versions;
  versions.Add(server.url() + "/x", {.bytes = object_.size(), .etag = "\"2\"", .modified_s = 0});
  const auto reader = MakeObjectReader(2, versions).value();
  std::vector<ReadRequest> requests = Requests(server.url() + "/x", 1, 10);
  ReadAll(*reader, requests);
  EXPECT_EQ(requests[0].status.error().code, Code::kDataLoss);
  EXPECT_THAT(requests[0].status.error().cause, HasSubstr("has changed"));
}

std::string WithoutTag(std::string response) {
  const std::string tag = "ETag: \"1\"\r\n";
  return response.erase(response.find(tag), tag.size());
}

// A response without the known version may have any bytes.
TEST_F(ObjectReads, WithoutTheKnownVersionFail) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return WithoutTag(ObjectServer::Part(object_, get)); });
  for (const ObjectVersion& version :
       {ObjectVersion{.bytes = object_.size(), .etag = "\"1\"", .modified_s = 0},
        ObjectVersion{.bytes = object_.size(), .etag = {}, .modified_s = 5}}) {
    const auto fetcher = ObjectFetcher::Make(1, Impatient()).value();
    std::vector<uint8_t> to(10);
    ObjectFetch fetch = FetchOf(server.url() + "/x", to);
    fetch.expected = &version;
    EXPECT_EQ(FetchObject(*fetcher, fetch).error().code, Code::kUnavailable);
  }
  EXPECT_EQ(server.requests(), 6);
}

// Web servers make tags of a file's time and size; stores name the content.
TEST_F(ObjectReads, ContentIsHashedUnlessAStoreNamesIt) {
  struct Case {
    const char *etag, *header;
    bool hashed;
  };
  for (const Case& one : std::vector<Case>{
           {"\"9b2cf535f27731c974343645a3985328-12\"", "x-amz-request-id: 1\r\n", false},
           {"\"CJ-9tZnO5YUDEAE=\"", "X-Goog-Hash: crc32c=n03x6A==\r\n", false},
           {"\"0x8D4BCC2E4835CD0\"", "x-ms-request-id: 1\r\n", false},
           {"\"d41d8cd98f00b204e9800998ecf8427e\"", "", true},  // Starlette: MD5 of "time-size"
           {"\"5e8-186a0\"", "", true},                         // nginx
           {"\"186a0-5f1e5b7c0a280\"", "", true},               // Apache
           {"\"2a-186a0-5f1e5b7c0a280\"", "", true},            // Apache, with the inode
           {"\"sqx9c7255s\"", "", true},                        // Caddy
           {"\"1234567890\"", "", true},                        // lighttpd
           {"\"5ab3c6ad9c2d41:0\"", "", true},                  // IIS
           {"W/\"1\"", "x-amz-request-id: 1\r\n", true}}) {
    const ObjectServer server([&](const ObjectServer::Get& get) {
      std::string response = ObjectServer::Part(object_, get);
      const size_t at = response.find("ETag: \"1\"");
      return response.replace(at, 9, "ETag: " + std::string(one.etag)).insert(at, one.header);
    });
    const auto file = ObjectFile::Open(server.url() + "/x").value();
    EXPECT_EQ(server.requests(), 1) << "opening reads no parts";
    ASSERT_TRUE(file->Identify().ok());
    EXPECT_EQ(file->version().content != 0, one.hashed) << one.etag;
  }
}

// An object that now has a tag may differ from the one of the same date.
TEST_F(ObjectReads, OfAVersionWithAnotherNameAreNotKept) {
  const ObjectServer server([&](const ObjectServer::Get& get) {
    std::string response = ObjectServer::Part(object_, get);
    return response.insert(response.find("ETag"),
                           "Last-Modified: Thu, 01 Jan 1970 00:00:05 GMT\r\n");
  });
  const TempFolder folder;
  const auto cache = DiskCache::Open(folder.Path("cache"), 1 << 20).value();
  ObjectVersions versions;
  versions.Add(server.url() + "/x", {.bytes = object_.size(), .etag = {}, .modified_s = 5}, cache);
  const auto reader = MakeObjectReader(2, versions).value();
  std::vector<ReadRequest> requests = Requests(server.url() + "/x", 1, 10);
  ReadAll(*reader, requests);
  EXPECT_TRUE(requests[0].status.ok());
  EXPECT_EQ(cache->counts().kept, 0);
}

TEST_F(ObjectReads, OfLocalPathsAreThoseOfFiles) {
  const TempFolder folder;
  const ObjectVersions versions;
  const auto reader = MakeObjectReader(2, versions).value();
  std::vector<ReadRequest> requests = Requests(folder.Write("x", object_), 3, 1000);
  requests[2].path += ".none";
  ReadAll(*reader, requests);
  EXPECT_EQ(BytesOf(requests[1]), object_.substr(1000, 1000));
  EXPECT_EQ(requests[2].status.error().code, Code::kNotFound);
}

TEST_F(ObjectReads, OfEmptyRangesNeedNoServer) {
  const ObjectServer server([&](const ObjectServer::Get& /*get*/) { return std::string(); });
  const ObjectVersions versions;
  const auto reader = MakeObjectReader(2, versions).value();
  std::vector<ReadRequest> requests = Requests(server.url() + "/x", 3, 0);
  ReadAll(*reader, requests);
  for (const ReadRequest& request : requests) {
    EXPECT_TRUE(request.status.ok());
    EXPECT_EQ(request.size, 0);
  }
  EXPECT_EQ(server.requests(), 0);
}

// Ranges of a cache and of the server, some of which the cache has lost.
TEST_F(ObjectReads, ComeFromTheCacheIfItHasThem) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
  const TempFolder folder;
  const auto cache = DiskCache::Open(folder.Path("cache"), 1 << 20).value();
  ObjectVersions versions;
  versions.Add(server.url() + "/x", {.bytes = object_.size(), .etag = "\"1\"", .modified_s = 0},
               cache);
  const auto reader = MakeObjectReader(30, versions).value();
  std::vector<ReadRequest> requests = Requests(server.url() + "/x", 100, 3000);
  ReadAll(*reader, requests);
  EXPECT_EQ(server.requests(), 100);
  ReadAll(*reader, requests);
  EXPECT_EQ(server.requests(), 100);
  for (const auto& entry : std::filesystem::directory_iterator(folder.Path("cache"))) {
    if (entry.path().extension() != ".data") continue;
    std::fstream data(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    data.seekp(7000).put('\0').put('\1');
  }
  ReadAll(*reader, requests);
  EXPECT_EQ(server.requests(), 101);
  for (const ReadRequest& request : requests) {
    ASSERT_EQ(BytesOf(request), object_.substr(request.offset, 3000));
  }
}

// Requests for ranges of one sample, with buffers for `room` bytes.
class NeighbouringReads : public ObjectReads {
 protected:
  static constexpr size_t kMost = 16;  // in a request

  struct Range {
    uint64_t offset = 0, length = 0;
  };

  std::vector<ReadRequest> OfSample(const std::string& url, const std::vector<Range>& ranges,
                                    size_t room = 64 << 10) {
    std::vector<ReadRequest> reads = Requests(url, ranges.size(), 0);
    for (size_t i = 0; i < ranges.size(); ++i) {
      reads[i].offset = ranges[i].offset;
      reads[i].length = ranges[i].length;
      EXPECT_TRUE(reads[i].buffer.Grow(room).ok());
    }
    return reads;
  }

  // Returns how many requests the server gets for these reads, whose bytes must be the object's.
  uint64_t RequestsFor(std::vector<ReadRequest> reads) {
    const ObjectServer server(
        [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
    for (ReadRequest& read : reads) read.path = server.url() + read.path;
    const ObjectVersions versions;
    const auto reader = MakeObjectReader(64, versions, kMost).value();
    ReadAll(*reader, reads);
    for (const ReadRequest& read : reads) {
      EXPECT_TRUE(read.status.ok()) << read.status.error().ToString();
      EXPECT_EQ(BytesOf(read), object_.substr(read.offset, read.length));
    }
    EXPECT_EQ(reader->counts().calls, server.requests());
    return server.requests();
  }

  uint64_t RequestsFor(const std::vector<Range>& ranges, size_t room = 64 << 10) {
    return RequestsFor(OfSample("/x", ranges, room));
  }
};

TEST_F(NeighbouringReads, AreOneRequest) {
  constexpr uint64_t kGap = 16 << 10;
  EXPECT_EQ(RequestsFor({{1000, 500}, {1500, 700}, {2200, 1}}), 1u);
  EXPECT_EQ(RequestsFor({{1000, 500}, {1500 + kGap, 700}}), 1u) << "a gap";
  EXPECT_EQ(RequestsFor({{1000, 500}, {1501 + kGap, 700}}), 2u) << "too far";
  EXPECT_EQ(RequestsFor({{5000, 500}, {4000, 700}, {3000, 10}}), 1u) << "in another order";
  EXPECT_EQ(RequestsFor({{1501 + kGap, 700}, {1000, 500}}), 2u);
  EXPECT_EQ(RequestsFor({{1000, 500}, {1000, 500}, {1100, 9}}), 1u) << "of the same bytes";
  EXPECT_EQ(RequestsFor({{100, 500}, {100'000, 9}, {600, 50}}), 3u) << "with another one between";
  EXPECT_EQ(RequestsFor({{0, 9000}, {9000, 0}, {9000, 9000}}), 1u) << "an empty one between";
  EXPECT_EQ(RequestsFor({{299'000, 500}, {299'500, 500}}), 1u) << "at the end";
  const uint64_t half = OfSample("", {{}}, 60'000)[0].buffer.capacity() / 2;
  EXPECT_EQ(RequestsFor({{0, half}, {half, half}, {2 * half, half}}, 60'000), 2u);
  EXPECT_EQ(RequestsFor({{0, half}, {half, half + 2}}, 60'000), 2u) << "no room for both";
  constexpr uint64_t kMostBytes = 256 << 10;
  EXPECT_EQ(RequestsFor({{0, 250'000}, {250'000, kMostBytes - 250'000}}, 1 << 20), 1u);
  EXPECT_EQ(RequestsFor({{0, 250'000}, {250'000, kMostBytes - 249'999}}, 1 << 20), 2u);
  EXPECT_EQ(RequestsFor(std::vector<Range>(kMost, {0, 10})), 1u);
  EXPECT_EQ(RequestsFor(std::vector<Range>(kMost + 1, {0, 10})), 2u);
}

// A request counts as all the reads that may share it, so that reads in flight stay below the
// capacity.
TEST_F(NeighbouringReads, AreNoMoreThanTheCapacity) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
  const ObjectVersions versions;
  for (uint32_t transfers = 1; transfers <= 3; ++transfers) {
    for (const size_t most : {size_t{1}, size_t{2}, size_t{5}, kMost}) {
      const auto reader = MakeObjectReader(transfers, versions, most).value();
      EXPECT_EQ(reader->capacity(), transfers * most);
      std::vector<ReadRequest> reads =
          OfSample(server.url() + "/x", std::vector<Range>(100, {0, 10}), 10);
      std::vector<ReadRequest*> left, done(1);
      for (ReadRequest& read : reads) left.push_back(&read);
      size_t reaped = 0;
      while (reaped < reads.size()) {
        if (most == 1) {
          EXPECT_EQ(reader->room(), transfers - reader->in_flight());
        }
        left.erase(left.begin(), left.begin() + static_cast<ptrdiff_t>(reader->Submit(left)));
        ASSERT_LE(reader->in_flight(), reader->capacity());
        reaped += reader->Reap(done, /*wait=*/true);
      }
      for (const ReadRequest& read : reads) EXPECT_EQ(BytesOf(read), object_.substr(0, 10));
    }
  }
}

TEST_F(NeighbouringReads, WithoutAnEndAreNot) {
  const ObjectServer server([](const ObjectServer::Get& /*get*/) {
    return std::string("HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n");
  });
  const ObjectVersions versions;
  const auto reader = MakeObjectReader(2, versions, kMost).value();
  constexpr uint64_t kLast = ~uint64_t{0};
  std::vector<ReadRequest> reads =
      OfSample(server.url() + "/x", {{kLast - 20, 19}, {kLast - 10, 100}});
  ReadAll(*reader, reads);
  for (const ReadRequest& read : reads) EXPECT_FALSE(read.status.ok());
  EXPECT_EQ(reader->counts().calls, 2u);
}

TEST_F(NeighbouringReads, OfOtherSamplesOrObjectsAreNot) {
  const auto reads_with = [&](auto change) {
    std::vector<ReadRequest> reads = OfSample("/x", {{1000, 500}, {1500, 700}});
    change(reads[1]);
    return reads;
  };
  EXPECT_EQ(RequestsFor(reads_with([](ReadRequest& read) { read.tag = 1; })), 2u);
  EXPECT_EQ(RequestsFor(reads_with([](ReadRequest& read) { read.owner = nullptr; })), 2u);
  EXPECT_EQ(RequestsFor(reads_with([](ReadRequest& read) { read.path = "/y"; })), 2u);
}

TEST_F(NeighbouringReads, AreTheObjectsRanges) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<Range> ranges(1 + random() % 40);
    uint64_t offset = random() % 100'000;
    for (Range& range : ranges) {
      range = {offset, 1 + random() % 5000};
      offset = random() % 8 == 0 ? random() % 200'000 : offset + random() % 6000;
    }
    EXPECT_LE(RequestsFor(ranges), ranges.size());
  }
}

// The object is shorter than it should be.
TEST_F(NeighbouringReads, FailLikeReadsOnTheirOwn) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
  const ObjectVersions versions;
  const std::vector<Range> ranges{{299'999, 2}, {298'000, 1000}, {299'000, 1001}, {299'500, 500}};
  std::vector<ReadRequest> joint = OfSample(server.url() + "/x", ranges);
  std::vector<ReadRequest> alone = OfSample(server.url() + "/x", ranges);
  for (size_t i = 0; i < alone.size(); ++i) alone[i].tag = static_cast<uint32_t>(i);
  for (std::vector<ReadRequest>* const reads : {&alone, &joint}) {
    const auto reader = MakeObjectReader(1, versions, kMost).value();
    ReadAll(*reader, *reads);
  }
  EXPECT_EQ(server.requests(), 4u + 1u + 2u);
  for (size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_EQ(joint[i].status.ok(), i % 2 == 1);
    ASSERT_EQ(alone[i].status.ok(), i % 2 == 1);
    EXPECT_EQ(BytesOf(joint[i]),
              i % 2 == 1 ? object_.substr(ranges[i].offset, ranges[i].length) : "");
    if (joint[i].status.ok()) continue;
    EXPECT_EQ(joint[i].status.error().ToString(), alone[i].status.error().ToString());
  }
}

TEST_F(NeighbouringReads, OfAnotherVersionFailTogether) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
  ObjectVersions versions;
  versions.Add(server.url() + "/x", {.bytes = object_.size(), .etag = "\"2\"", .modified_s = 0});
  const auto reader = MakeObjectReader(2, versions, kMost).value();
  std::vector<ReadRequest> reads = OfSample(server.url() + "/x", {{0, 10}, {10, 10}, {20, 10}});
  ReadAll(*reader, reads);
  EXPECT_EQ(server.requests(), 1u);
  for (const ReadRequest& read : reads) {
    EXPECT_EQ(read.status.error().code, Code::kDataLoss);
    EXPECT_THAT(read.status.error().cause, HasSubstr("has changed"));
  }
}

TEST_F(NeighbouringReads, FailTogetherIfTheServerDoes) {
  const ObjectServer server([](const ObjectServer::Get& /*get*/) {
    return std::string("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
  });
  const ObjectVersions versions;
  const auto reader = MakeObjectReader(2, versions, kMost).value();
  std::vector<ReadRequest> reads = OfSample(server.url() + "/x", {{0, 10}, {10, 10}, {20, 10}});
  ReadAll(*reader, reads);
  EXPECT_EQ(server.requests(), 1u);
  for (const ReadRequest& read : reads) {
    EXPECT_EQ(read.status.error().code, Code::kNotFound);
    EXPECT_EQ(read.status.error().offset, read.offset);
    EXPECT_EQ(read.size, 0u);
  }
}

TEST_F(NeighbouringReads, AreGivenUpTogether) {
  std::promise<void> ended;
  const std::shared_future<void> until(ended.get_future());
  std::atomic<int> requests{0};
  const ObjectServer server([&](const ObjectServer::Get& get) {
    if (requests.fetch_add(1) != 0) until.wait();
    return ObjectServer::Part(object_, get);
  });
  const ObjectVersions versions;
  const auto reader = MakeObjectReader(1, versions, kMost).value();
  // The object ends before the last of these, and the others wait for its transfer.
  std::vector<ReadRequest> reads =
      OfSample(server.url() + "/x", {{299'000, 10}, {299'990, 20}, {0, 10}, {10, 10}});
  for (ReadRequest& read : std::span(reads).subspan(2)) read.tag = 1;
  std::vector<ReadRequest*> all, done(4);
  for (ReadRequest& read : reads) all.push_back(&read);
  EXPECT_EQ(reader->Submit(all), 4u);
  EXPECT_EQ(reader->in_flight(), 4u);
  while (reader->in_flight() == 4u || requests < 2) (void)reader->Reap(done, /*wait=*/true);
  EXPECT_TRUE(reads[0].status.ok());
  EXPECT_EQ(reader->in_flight(), 3u);
  reader->GiveUp(this);
  EXPECT_EQ(reader->Reap(done, /*wait=*/true), 3u);
  for (const ReadRequest& read : std::span(reads).subspan(1)) {
    EXPECT_EQ(read.status.error().code, Code::kCancelled);
  }
  EXPECT_EQ(reader->in_flight(), 0u);
  ended.set_value();
}

// The cache has the ranges of reads, not of requests.
TEST_F(NeighbouringReads, AreKeptOneByOne) {
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object_, get); });
  const TempFolder folder;
  const auto cache = DiskCache::Open(folder.Path("cache"), 1 << 20).value();
  ObjectVersions versions;
  versions.Add(server.url() + "/x", {.bytes = object_.size(), .etag = "\"1\"", .modified_s = 0},
               cache);
  const auto reader = MakeObjectReader(8, versions, kMost).value();
  const auto read = [&](const std::vector<Range>& ranges) {
    std::vector<ReadRequest> reads = OfSample(server.url() + "/x", ranges);
    ReadAll(*reader, reads);
    for (const ReadRequest& one : reads) {
      EXPECT_EQ(BytesOf(one), object_.substr(one.offset, one.length));
    }
    return server.requests();
  };
  EXPECT_EQ(read({{0, 100}, {100, 200}, {300, 300}}), 1u);
  EXPECT_EQ(cache->counts().kept, 3u);
  EXPECT_EQ(read({{100, 200}, {300, 300}}), 1u);
  EXPECT_EQ(read({{100, 200}, {300, 300}, {600, 50}, {650, 50}}), 2u);
  EXPECT_EQ(read({{650, 50}}), 2u);
}

TEST(ObjectVersion, IdentifiesAnObjectOfItsUrl) {
  const ObjectVersion strong{.bytes = 1, .etag = "\"1\"", .modified_s = 0};
  const ObjectVersion weak{.bytes = 1, .etag = "W/\"1\"", .modified_s = 0};
  const ObjectVersion dated{.bytes = 1, .etag = {}, .modified_s = 5};
  for (const ObjectVersion& version : {strong, weak, dated}) {
    EXPECT_TRUE(version.Identifies("https://h/x"));
    EXPECT_EQ(version.Identifies("https://h/x?y"), version == strong);
  }
  EXPECT_FALSE(ObjectVersion({.bytes = 1, .etag = {}, .modified_s = 0}).Identifies("https://h/x"));
}

// ReadAt returns the same through windows, with read-ahead, and in pieces as a string does.
TEST_F(ObjectReads, ThroughAFileAreTheObjects) {
  const std::string object = Noise(21'000'000);
  const ObjectServer server(
      [&](const ObjectServer::Get& get) { return ObjectServer::Part(object, get); });
  const auto file = ObjectFile::Open(server.url() + "/x").value();
  ASSERT_EQ(file->version().bytes, object.size());
  std::mt19937_64 random(7);
  std::vector<uint8_t> to;
  uint64_t next = 0;
  for (int i = 0; i < 200; ++i) {
    const bool goes_on = random() % 2 == 0;
    const uint64_t offset = goes_on ? next : random() % (object.size() + 10);
    const uint64_t most = i % 50 == 0 ? 20'000'000 : 100'000;
    to.assign(random() % most, 0);
    const size_t got = file->ReadAt(offset, to).value();
    const std::string wanted = offset < object.size() ? object.substr(offset, to.size()) : "";
    ASSERT_EQ(std::string(to.begin(), to.begin() + static_cast<ptrdiff_t>(got)), wanted);
    next = offset + got + random() % 10'000;
  }
}

TEST_F(ObjectReads, OfAnEmptyObject) {
  const ObjectServer server([](const ObjectServer::Get& /*get*/) {
    return std::string("HTTP/1.1 416 No\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n");
  });
  const auto file = ObjectFile::Open(server.url() + "/x");
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  EXPECT_EQ((*file)->version().bytes, 0);
}

// A part of unknown length, and a range that is refused for another reason, make no empty object.
TEST_F(ObjectReads, OfUnknownLengthFail) {
  for (const char* const response :
       {"HTTP/1.1 206 P\r\nETag: \"1\"\r\nContent-Range: bytes 0-9/*\r\nContent-Length: 10\r\n\r\n"
        "0123456789",
        "HTTP/1.1 416 No\r\nContent-Range: bytes */30720\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n"}) {
    const ObjectServer server(
        [&](const ObjectServer::Get& /*get*/) { return std::string(response); });
    const auto fetcher = ObjectFetcher::Make(1, Impatient()).value();
    std::vector<uint8_t> to(10);
    ObjectFetch fetch = FetchOf(server.url() + "/x", to);
    fetch.may_be_shorter = true;
    EXPECT_FALSE(FetchObject(*fetcher, fetch).ok()) << response;
  }
}

}  // namespace
}  // namespace stoker
