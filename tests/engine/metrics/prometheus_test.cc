#include "engine/metrics/stats.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Prometheus, WritesEveryMetric) {
  LoaderStats stats;
  stats.samples = 512;
  stats.batches = 2;
  stats.bad = {.faults = {1, 0, 2}, .substituted = 2, .dropped = 1};
  stats.bytes_read = 56'000'000;
  stats.stages = {.decode_ns = 1'500'000'000, .resize_ns = 5, .augment_ns = 0, .mix_ns = 7'000};
  stats.worker_busy_ns = {1'000'000'001, 999'999'999};
  stats.clocked = {.wall_ns = 400'000'000, .cpu_ns = 100'000'000};
  stats.read_cpu_ns = 20'000'000;
  stats.wait_ns = 400'000'000;
  stats.waited = {.storage_ns = 100'000'000,
                  .decode_ns = 200'000'000,
                  .map_ns = 5'000'000,
                  .copy_ns = 60'000'000,
                  .other_ns = 40'000'000};
  stats.consumer_ns = 12'000'000'000;
  stats.decoded.fast = 500;
  stats.decoded.progressive = 90;
  stats.decoded.packed = 70;
  stats.decoded.fallback[static_cast<size_t>(Fallback::kProcess)] = 10;
  stats.decoded.fallback[static_cast<size_t>(Fallback::kBits)] = 2;
  stats.decoded.several_frames = 7;
  stats.decoded.no_end_marker = 4;
  stats.decoded.accepted_truncated = 6;
  stats.decoded.scaled = 8;
  stats.decoded.scalable = 9;
  stats.decoded.indexed = 400;
  stats.decoded.stale = 3;
  stats.decoded.contradicted = 1;
  stats.decoded.on_device = 60;
  stats.decoded.on_worker = {5, 0, 0, 2};
  stats.cache = {.place = "ram:8GiB",
                 .hits = 300,
                 .misses = 212,
                 .kept = 200,
                 .refused = 12,
                 .bytes = 5000,
                 .most_bytes = 6000};
  stats.depth = 4;
  stats.workers = 2;
  stats.threads = 8;
  stats.reads = 16;
  stats.decisions_made = 9;
  stats.executor = "tbb";
  stats.reader = "uring";
  stats.lent_batches = 1;
  stats.lent_bytes = 100;
  stats.slot_bytes = 100;
  stats.pinned_bytes = 0;
  stats.memory_used = 1'000;
  stats.memory_peak = 2'000;
  stats.memory_budget = 4'294'967'296;
  EXPECT_EQ(PrometheusText(stats, "train"),
            R"(# HELP stoker_samples_total Samples processed, including failed ones.
# TYPE stoker_samples_total counter
stoker_samples_total{loader="train"} 512
# HELP stoker_batches_total Batches delivered.
# TYPE stoker_batches_total counter
stoker_batches_total{loader="train"} 2
# HELP stoker_bad_samples_total Samples that could not be used, by class.
# TYPE stoker_bad_samples_total counter
stoker_bad_samples_total{loader="train",class="vanished"} 1
stoker_bad_samples_total{loader="train",class="unreadable"} 0
stoker_bad_samples_total{loader="train",class="truncated"} 2
stoker_bad_samples_total{loader="train",class="undecodable"} 0
stoker_bad_samples_total{loader="train",class="over_limits"} 0
stoker_bad_samples_total{loader="train",class="unsupported"} 0
stoker_bad_samples_total{loader="train",class="forbidden"} 0
# HELP stoker_substituted_rows_total Rows filled with another sample.
# TYPE stoker_substituted_rows_total counter
stoker_substituted_rows_total{loader="train"} 2
# HELP stoker_dropped_rows_total Rows dropped from batches.
# TYPE stoker_dropped_rows_total counter
stoker_dropped_rows_total{loader="train"} 1
# HELP stoker_read_bytes_total Bytes of the files read, cached or not.
# TYPE stoker_read_bytes_total counter
stoker_read_bytes_total{loader="train"} 56000000
# HELP stoker_stage_seconds_total Time by stage: workers', and of calls of the program's function.
# TYPE stoker_stage_seconds_total counter
stoker_stage_seconds_total{loader="train",stage="decode"} 1.500000000
stoker_stage_seconds_total{loader="train",stage="resize"} 0.000000005
stoker_stage_seconds_total{loader="train",stage="augment"} 0.000000000
stoker_stage_seconds_total{loader="train",stage="mix"} 0.000007000
stoker_stage_seconds_total{loader="train",stage="map"} 0.000000000
# HELP stoker_map_calls_total Calls of the program's function with whole batches.
# TYPE stoker_map_calls_total counter
stoker_map_calls_total{loader="train"} 0
# HELP stoker_worker_busy_seconds_total Time that a worker spent on samples.
# TYPE stoker_worker_busy_seconds_total counter
stoker_worker_busy_seconds_total{loader="train",worker="0"} 1.000000001
stoker_worker_busy_seconds_total{loader="train",worker="1"} 0.999999999
# HELP stoker_worker_core_share Share of their busy time in which workers had a core, sampled.
# TYPE stoker_worker_core_share gauge
stoker_worker_core_share{loader="train"} 0.250000
# HELP stoker_reader_cpu_seconds_total CPU time of the reader threads, for all loaders of the process.
# TYPE stoker_reader_cpu_seconds_total counter
stoker_reader_cpu_seconds_total{loader="train"} 0.020000000
# HELP stoker_wait_seconds_total Time that the consumer waited for batches, by cause.
# TYPE stoker_wait_seconds_total counter
stoker_wait_seconds_total{loader="train",cause="storage"} 0.100000000
stoker_wait_seconds_total{loader="train",cause="decode"} 0.200000000
stoker_wait_seconds_total{loader="train",cause="map"} 0.005000000
stoker_wait_seconds_total{loader="train",cause="copy"} 0.060000000
stoker_wait_seconds_total{loader="train",cause="other"} 0.040000000
# HELP stoker_stalls_total Long waits during which nothing moved.
# TYPE stoker_stalls_total counter
stoker_stalls_total{loader="train"} 0
# HELP stoker_consumer_seconds_total Time between receiving a batch and asking for the next one.
# TYPE stoker_consumer_seconds_total counter
stoker_consumer_seconds_total{loader="train"} 12.000000000
# HELP stoker_jpeg_images_total JPEGs decoded, packed or not, by decoder.
# TYPE stoker_jpeg_images_total counter
stoker_jpeg_images_total{loader="train",decoder="stoker"} 500
stoker_jpeg_images_total{loader="train",decoder="stoker-packed"} 70
stoker_jpeg_images_total{loader="train",decoder="libjpeg-turbo"} 12
# HELP stoker_jpeg_progressive_total Progressive JPEGs among those that stoker decoded.
# TYPE stoker_jpeg_progressive_total counter
stoker_jpeg_progressive_total{loader="train"} 90
# HELP stoker_several_frames_total Animated images, and files of several pages, whose first frame was decoded.
# TYPE stoker_several_frames_total counter
stoker_several_frames_total{loader="train"} 7
# HELP stoker_jpeg_no_end_marker_total JPEGs with complete data but no end-of-image marker, decoded by workers or a device.
# TYPE stoker_jpeg_no_end_marker_total counter
stoker_jpeg_no_end_marker_total{loader="train"} 4
# HELP stoker_jpeg_accepted_truncated_total JPEGs with missing data, which accept_truncated accepts.
# TYPE stoker_jpeg_accepted_truncated_total counter
stoker_jpeg_accepted_truncated_total{loader="train"} 6
# HELP stoker_jpeg_scaled_total JPEGs decoded at a reduced size.
# TYPE stoker_jpeg_scaled_total counter
stoker_jpeg_scaled_total{loader="train"} 8
# HELP stoker_jpeg_scalable_total JPEGs that the option decode="scaled" would have decoded at a reduced size.
# TYPE stoker_jpeg_scalable_total counter
stoker_jpeg_scalable_total{loader="train"} 9
# HELP stoker_images_for_device_total Images meant for a device, by decoder, and by reason for workers.
# TYPE stoker_images_for_device_total counter
stoker_images_for_device_total{loader="train",by="device",reason=""} 60
stoker_images_for_device_total{loader="train",by="worker",reason="not_prepared"} 5
stoker_images_for_device_total{loader="train",by="worker",reason="unsupported"} 0
stoker_images_for_device_total{loader="train",by="worker",reason="damaged"} 0
stoker_images_for_device_total{loader="train",by="worker",reason="no_room"} 2
# HELP stoker_crop_index_images_total Images with a crop index, by result: used, stale or wrong.
# TYPE stoker_crop_index_images_total counter
stoker_crop_index_images_total{loader="train",result="used"} 400
stoker_crop_index_images_total{loader="train",result="stale"} 3
stoker_crop_index_images_total{loader="train",result="wrong"} 1
# HELP stoker_cache_samples_total Samples that the loader's cache had, or did not have.
# TYPE stoker_cache_samples_total counter
stoker_cache_samples_total{loader="train",result="hit"} 300
stoker_cache_samples_total{loader="train",result="miss"} 212
# HELP stoker_cache_kept_samples_total Samples that this loader has added to its cache.
# TYPE stoker_cache_kept_samples_total counter
stoker_cache_kept_samples_total{loader="train"} 200
# HELP stoker_cache_refused_samples_total Samples not added because the cache is full.
# TYPE stoker_cache_refused_samples_total counter
stoker_cache_refused_samples_total{loader="train"} 12
# HELP stoker_cache_bytes Bytes of the samples in the cache, of all that share it.
# TYPE stoker_cache_bytes gauge
stoker_cache_bytes{loader="train"} 5000
# HELP stoker_cache_limit_bytes Bytes that the cache may take; 0 means that there is none.
# TYPE stoker_cache_limit_bytes gauge
stoker_cache_limit_bytes{loader="train"} 6000
# HELP stoker_depth Current limit of batches in production.
# TYPE stoker_depth gauge
stoker_depth{loader="train"} 4
# HELP stoker_workers Current limit of workers that decode at a time.
# TYPE stoker_workers gauge
stoker_workers{loader="train"} 2
# HELP stoker_threads Number of workers, for all loaders.
# TYPE stoker_threads gauge
stoker_threads{loader="train"} 8
# HELP stoker_reads Current limit of reads in flight.
# TYPE stoker_reads gauge
stoker_reads{loader="train"} 16
# HELP stoker_decisions_total Changes of depth, workers and reads.
# TYPE stoker_decisions_total counter
stoker_decisions_total{loader="train"} 9
# HELP stoker_loader_info Always 1; the executor and the reader of the loader.
# TYPE stoker_loader_info gauge
stoker_loader_info{loader="train",executor="tbb",reader="uring"} 1
# HELP stoker_lent_batches Batches held by the caller.
# TYPE stoker_lent_batches gauge
stoker_lent_batches{loader="train"} 1
# HELP stoker_lent_bytes Memory of batches held by the caller.
# TYPE stoker_lent_bytes gauge
stoker_lent_bytes{loader="train"} 100
# HELP stoker_batch_bytes Memory of one batch.
# TYPE stoker_batch_bytes gauge
stoker_batch_bytes{loader="train"} 100
# HELP stoker_pinned_bytes Memory of batches that is pinned for a device.
# TYPE stoker_pinned_bytes gauge
stoker_pinned_bytes{loader="train"} 0
# HELP stoker_memory_used_bytes Working memory in use, of all loaders.
# TYPE stoker_memory_used_bytes gauge
stoker_memory_used_bytes{loader="train"} 1000
# HELP stoker_memory_peak_bytes Highest working memory in use so far.
# TYPE stoker_memory_peak_bytes gauge
stoker_memory_peak_bytes{loader="train"} 2000
# HELP stoker_memory_budget_bytes Limit of the working memory.
# TYPE stoker_memory_budget_bytes gauge
stoker_memory_budget_bytes{loader="train"} 4294967296
)");
}

TEST(Prometheus, EscapesLoaderNames) {
  const std::string page = PrometheusText({}, "a\\b \"c\"\nd{}=, ü");
  EXPECT_NE(page.find("stoker_batches_total{loader=\"a\\\\b \\\"c\\\"\\nd{}=, ü\"} 0\n"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker
