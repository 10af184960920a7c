/* The types of stoker_c.h. */
#pragma once

#include <stdint.h>

/* These are C. NOLINTBEGIN(modernize-use-using,readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

enum { STOKER_ABI_VERSION = 2, STOKER_MAX_DIMS = 8, STOKER_MAX_PATH = 4096 };

/* The kind of an error; treat unknown values as STOKER_INTERNAL. */
enum {
  STOKER_INVALID_ARGUMENT = 1,
  STOKER_NOT_FOUND = 2,
  STOKER_PERMISSION_DENIED = 3,
  STOKER_DATA_LOSS = 4,
  STOKER_RESOURCE_EXHAUSTED = 5,
  STOKER_FAILED_PRECONDITION = 6,
  STOKER_UNIMPLEMENTED = 7,
  STOKER_CANCELLED = 8,
  STOKER_UNAVAILABLE = 9,
  STOKER_INTERNAL = 10
};

/* Element types. */
enum {
  STOKER_BOOL = 1,
  STOKER_U8 = 2,
  STOKER_I8 = 3,
  STOKER_U16 = 4,
  STOKER_I16 = 5,
  STOKER_U32 = 6,
  STOKER_I32 = 7,
  STOKER_U64 = 8,
  STOKER_I64 = 9,
  STOKER_F16 = 10,
  STOKER_BF16 = 11,
  STOKER_F32 = 12,
  STOKER_F64 = 13,
  STOKER_STRING = 14, /* UTF-8; read by batch_string, not from `data` */
  STOKER_BYTES = 15   /* likewise */
};

typedef struct stoker_error stoker_error;
typedef struct stoker_dataset stoker_dataset; /* a loader: options, and its engines */
typedef struct stoker_cursor stoker_cursor;   /* one iteration: a position in the dataset */
typedef struct stoker_batch stoker_batch;
typedef struct stoker_owner stoker_owner; /* keeps the memory of one column valid */
typedef struct stoker_processor stoker_processor;

/* Called about every 50 ms by a call that waits, on its own thread, and by cursor_next once more
 * when the batch is there: any result but 0 ends the call with CANCELLED, and nothing is lost: the
 * next call delivers what this one would have. */
typedef struct stoker_interrupt {
  uint64_t struct_size;
  int (*asked)(void* context);
  void* context;
} stoker_interrupt;

typedef struct stoker_dataset_info {
  uint64_t struct_size;
  uint64_t batches_per_epoch;
  int32_t cores; /* decode workers: the cores allotted to the process, or what the user chose */
  int32_t depth; /* how many batches may be in production now: one more is worth appending ahead */
} stoker_dataset_info;

/* Names a batch: with the same options, the same epoch, index and start give the same bytes. The
 * library reads these three, and fills the others when it returns a name. */
typedef struct stoker_batch_name {
  uint64_t struct_size;
  uint64_t epoch;
  uint64_t index;     /* within its epoch; as the next batch of an iteration, `end` is the end */
  uint64_t start;     /* where its batch 0 begins, a position of the epoch's order or, with
                         batch_tokens, a batch: not 0 when other ranks have begun the epoch */
  uint64_t end;       /* how many batches of this rank the epoch has from `start` */
  uint64_t last_rows; /* of batch `end` - 1; 0: there is none */
} stoker_batch_name;

typedef struct stoker_batch_info {
  uint64_t struct_size;
  uint64_t epoch;
  uint64_t index; /* within its epoch */
  int32_t columns;
  const uint64_t* sample_ids; /* of the rows; valid until batch_free */
  uint64_t start;             /* as in stoker_batch_name */
  int64_t rows;
} stoker_batch_info;

typedef struct stoker_column {
  uint64_t struct_size;
  const char* name; /* "image", "label", of further views "image_1", …; valid until batch_free */
  int32_t dtype;
  int32_t ndim;
  int64_t dims[STOKER_MAX_DIMS]; /* dims[0]: rows; of a ragged column the objects of all rows */
  uint64_t bytes;
  void* data; /* C order, dense, 64-byte aligned, writable; valid until batch_free, or as long as an
                 owner of the column is kept */
  int32_t pinned; /* 1: for GPUs to copy from by themselves; -1: not, though the loader pins slots;
                     0: it does not */
  const int64_t* offsets; /* of a ragged column: the objects of row r are [offsets[r], offsets[r +
                             1]); rows + 1 numbers, 64-byte aligned, as valid as `data`. NULL: each
                             row is as long as the others */
} stoker_column;

typedef struct stoker_stats {
  uint64_t struct_size;
  uint64_t samples; /* processed */
  uint64_t batches; /* delivered */
  uint64_t bytes_read;
  uint64_t wait_ns;      /* time that consumers waited */
  uint64_t lent_batches; /* batches that consumers hold now */
  uint64_t lent_bytes;
  uint64_t memory_used; /* working memory of all loaders that share the Runtime */
} stoker_stats;

/* A member that is 0 has its default. */
typedef struct stoker_processor_options {
  uint64_t struct_size;
  int32_t dtype;  /* STOKER_F32 (the default), STOKER_F16, STOKER_BF16; or STOKER_U8, for a
                     device that normalises */
  int32_t pillow; /* 1: resample and round as the classes with Pil, not as torchvision's */
  int32_t keep_orientation; /* 1: images are not turned as their EXIF tag says */
  int32_t accept_truncated; /* 1: of JPEGs, as far as they go */
  int32_t accept_16_bits;   /* 1: the upper 8 bits of images of 16 */
  int32_t max_scans;        /* of a JPEG; default 200 */
  int64_t max_pixels;       /* of an image; default 2^28 */
  uint64_t memory_budget;   /* bytes of working memory for all calls, without the arrays; default as
                               of a Runtime */
  const char* overrides;    /* a JSON object whose keys replace the configuration's */
} stoker_processor_options;

/* An image file. The bytes must stay valid and unchanged during the call. */
typedef struct stoker_encoded {
  uint64_t struct_size;
  const void* bytes;
  uint64_t size;    /* of `bytes` */
  const char* path; /* if it is not NULL, the file that is read instead of `bytes` */
} stoker_encoded;

typedef struct stoker_array_shape {
  uint64_t struct_size;
  int32_t dtype;
  int32_t ndim;
  int64_t dims[STOKER_MAX_DIMS]; /* as pixel_values of docs/processors.md */
  uint64_t bytes;
} stoker_array_shape;

typedef struct stoker_image_rows {
  uint64_t struct_size;
  int32_t height, width;           /* of the image, as viewed */
  int32_t grid_height, grid_width; /* patches, or tiles, of its first canvas */
  int64_t rows;                    /* of all canvases, without padding */
} stoker_image_rows;

/* Receives spans on stoker's own threads and its consumers': "stoker.read", "stoker.decode",
 * "stoker.mix", "stoker.pad", "stoker.wait". The result of `begin` is passed to `end`, on the same
 * thread. */
typedef struct stoker_trace {
  uint64_t struct_size;
  int64_t (*begin)(const char* name);
  void (*end)(int64_t span);
} stoker_trace;

#ifdef __cplusplus
} /* extern "C" */
#endif
/* NOLINTEND(modernize-use-using,readability-identifier-naming) */
