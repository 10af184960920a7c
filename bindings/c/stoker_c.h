/* stoker's door for plugins: a table of C functions that stays the same across compilers, C++
 * standard libraries and builds of TensorFlow.
 *
 * A plugin links to nothing of stoker. Whoever loads it hands it the table of the libstoker that
 * the process has loaded already: there is one in a process, so that a loader's statistics count
 * what a plugin took. A plugin asks for `abi_version` first. Structs begin with their size, which
 * the caller sets; the library fills no field beyond it, and new fields come last. New functions
 * come at the end of the table, whose size says which are there.
 *
 * Threads: datasets, keys and owners may be used by any thread; a cursor and a batch by one at a
 * time. Strings are UTF-8, but for paths, which are bytes as the file system has them. No C++
 * exception crosses; functions that cannot fail end the process when there is no memory at all. In
 * a forked child of the process that opened a dataset, batches of it are FAILED_PRECONDITION.
 *
 * Functions that can fail return NULL for success, else an error for the caller to free; what they
 * were to fill is then untouched, where nothing else is said.
 */
#pragma once

#include <stdint.h>

#include "bindings/c/stoker_types.h"

/* These are C. NOLINTBEGIN(modernize-use-using,readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

typedef struct stoker_api {
  uint64_t struct_size;
  uint32_t abi_version;
  const char* version; /* of stoker: "0.1.0" */

  /* ---- errors ---- */
  int32_t (*error_code)(const stoker_error* error);
  const char* (*error_message)(const stoker_error* error); /* file, offset, cause and advice */
  void (*error_free)(stoker_error* error);                 /* NULL is allowed, as in all below */

  /* ---- epochs: a counter for each key, kept as long as the process lives; no dataset is opened.
   * `key` is unique in the world. ---- */

  /* The epoch of a new iteration; the counter moves on. */
  uint64_t (*epoch_take)(const char* key);
  /* The one that epoch_take would return. */
  uint64_t (*epoch_next)(const char* key);
  /* Restores it, also backwards. */
  void (*epoch_set_next)(const char* key, uint64_t epoch);

  /* ---- datasets ---- */

  /* The dataset of this key where the process has one; else it is opened from `spec`
   * (docs/loader-spec.md), which may list a folder, and has the key from then on. */
  stoker_error* (*dataset_open)(const char* key, const char* spec, stoker_dataset** dataset);
  void (*dataset_free)(stoker_dataset* dataset);
  stoker_error* (*dataset_info)(stoker_dataset* dataset, stoker_dataset_info* info);
  stoker_error* (*dataset_stats)(stoker_dataset* dataset, stoker_stats* stats);

  /* One batch by its name, without a cursor. Consecutive calls are read ahead of, across epochs; a
   * call elsewhere makes that one batch only. Two sequences may take turns; calls on several
   * threads wait for each other. */
  stoker_error* (*dataset_batch_at)(stoker_dataset* dataset, const stoker_batch_name* name,
                                    const stoker_interrupt* interrupt, stoker_batch** batch);

  /* Something to tell the user, once: the consumer holds more than the memory budget, or the
   * folder's index cannot be used. NULL when there is nothing; else valid as long as `dataset`. */
  const char* (*dataset_warning)(stoker_dataset* dataset);

  /* The state of an iteration whose next batch is `next`, as text (engine/loader/loader_state.h),
   * into `state`, which has room for `capacity` bytes; `*size`: how many it takes, with the NUL.
   * Nothing is written if it does not fit. */
  stoker_error* (*dataset_state)(stoker_dataset* dataset, const stoker_batch_name* next,
                                 char* state, uint64_t capacity, uint64_t* size);

  /* The batch with which an iteration of this dataset goes on after a saved state. `same_ranks`:
   * not 0: a state of another world or batch size is refused. FAILED_PRECONDITION: it is of a
   * loader with other options or samples; the message has both values of each. INVALID_ARGUMENT: it
   * is no state. */
  stoker_error* (*dataset_place)(stoker_dataset* dataset, const char* state, int32_t same_ranks,
                                 stoker_batch_name* next);

  /* For all datasets that share the Runtime; NULL: no more. `trace` lives as long as the process.
   */
  void (*dataset_set_trace)(stoker_dataset* dataset, const stoker_trace* trace);

  /* ---- cursors ---- */

  /* At batch 0 of `epoch`; where that is negative, of the epoch that epoch_take returns at the
   * first cursor_next. Starts nothing before that. `repeat`: not 0 when the same epoch will be
   * iterated again afterwards; it is then prefetched. Keeps the dataset. */
  stoker_error* (*cursor_open)(stoker_dataset* dataset, int64_t epoch, int32_t repeat,
                               stoker_cursor** cursor);
  /* Does not wait, except maybe for the samples in work. */
  void (*cursor_free)(stoker_cursor* cursor);

  /* The next batch; NULL at the end, again and again. `passed`: 1 when the place moved on (a batch,
   * a batch with a bad sample), 0 when the next call tries the same again (CANCELLED, a limit); set
   * for errors too. */
  stoker_error* (*cursor_next)(stoker_cursor* cursor, const stoker_interrupt* interrupt,
                               stoker_batch** batch, int32_t* passed);

  /* The batch that the next cursor_next returns. FAILED_PRECONDITION while no epoch is decided, and
   * once batches were appended. */
  stoker_error* (*cursor_place)(stoker_cursor* cursor, stoker_batch_name* next);

  /* O(1); nothing is replayed. `next->index` may be the end. The counter of epochs stays. */
  stoker_error* (*cursor_seek)(stoker_cursor* cursor, const stoker_batch_name* next);

  /* From the first call on, and until cursor_seek, the cursor delivers exactly the batches that
   * were appended, in that order, and NULL when none is left; more may be appended then. */
  stoker_error* (*cursor_append)(stoker_cursor* cursor, const stoker_batch_name* name);

  /* ---- batches ---- */
  stoker_error* (*batch_info)(const stoker_batch* batch, stoker_batch_info* info);
  stoker_error* (*batch_column)(const stoker_batch* batch, int32_t column, stoker_column* out);
  /* Keeps this column's memory valid after batch_free, and no other column's. NULL: there is no
   * such column, or no memory. */
  stoker_owner* (*batch_owner)(const stoker_batch* batch, int32_t column);
  void (*batch_free)(stoker_batch* batch);
  void (*owner_free)(stoker_owner* owner); /* any time, also while the process exits */

  /* ---- samples ---- */

  /* The path of a sample's file, NUL-terminated, into `path`, which has room for STOKER_MAX_PATH
   * bytes. INVALID_ARGUMENT: there is no such sample. FAILED_PRECONDITION: samples in memory have
   * no files. */
  stoker_error* (*dataset_path)(stoker_dataset* dataset, uint64_t sample, char* path);

  /* Element `i`, in C order, of a column of STOKER_STRING or STOKER_BYTES. The bytes are not
   * terminated, and valid as long as the batch and its dataset. INVALID_ARGUMENT: there is no such
   * column or element, or it is of another type. */
  stoker_error* (*batch_string)(const stoker_batch* batch, int32_t column, uint64_t i,
                                const char** bytes, uint64_t* size);
} stoker_api;

/* NULL when this libstoker does not speak that version. */
const stoker_api* stoker_get_api(uint32_t abi_version);

#ifdef __cplusplus
} /* extern "C" */
#endif
/* NOLINTEND(modernize-use-using,readability-identifier-naming) */
