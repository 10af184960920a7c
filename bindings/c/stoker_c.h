/* The interface for plugins: a table of C functions that stays the same across compilers, C++
 * standard libraries and builds of TensorFlow.
 *
 * A plugin links to nothing of stoker. The program that loads it passes the table of the libstoker
 * that the process has loaded already: a process has one, so that a loader's statistics count the
 * batches that a plugin takes. A program that links to libstoker.so calls stoker_get_api. Both
 * first ask for `abi_version`. Structs begin with their size, which the caller sets; the library
 * fills no field beyond it, and new fields are added at the end. New functions are added at the end
 * of the table, whose size says which functions exist.
 *
 * Threads: datasets, keys and owners may be used by any thread; a cursor and a batch by one at a
 * time. Strings are UTF-8, except for paths, which are bytes as the file system has them. No C++
 * exception leaves the library; functions that cannot fail end the process when there is no memory
 * at all. In a forked child of the process that opened a dataset, its batches are
 * FAILED_PRECONDITION.
 *
 * Functions that can fail return NULL for success, otherwise an error that the caller frees; on
 * failure they leave their outputs untouched, unless stated otherwise.
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

  /* Returns the epoch of a new iteration, and advances the counter. */
  uint64_t (*epoch_take)(const char* key);
  /* Returns the epoch that epoch_take would return. */
  uint64_t (*epoch_next)(const char* key);
  /* Sets the counter, also backwards. */
  void (*epoch_set_next)(const char* key, uint64_t epoch);

  /* ---- datasets ---- */

  /* Returns the dataset of this key if the process has one; otherwise opens it from `spec`
   * (docs/loader-spec.md), which may list a folder, and gives it the key. */
  stoker_error* (*dataset_open)(const char* key, const char* spec, stoker_dataset** dataset);
  void (*dataset_free)(stoker_dataset* dataset);
  stoker_error* (*dataset_info)(stoker_dataset* dataset, stoker_dataset_info* info);
  stoker_error* (*dataset_stats)(stoker_dataset* dataset, stoker_stats* stats);

  /* Returns one batch by its name, without a cursor. Consecutive calls trigger read-ahead across
   * epochs; a call elsewhere makes that one batch only. Two sequences may be interleaved; calls on
   * several threads wait for each other. */
  stoker_error* (*dataset_batch_at)(stoker_dataset* dataset, const stoker_batch_name* name,
                                    const stoker_interrupt* interrupt, stoker_batch** batch);

  /* Returns a warning for the user, once: the consumer holds more than the memory budget, or the
   * folder's index cannot be used. NULL when there is none; otherwise valid as long as `dataset`.
   */
  const char* (*dataset_warning)(stoker_dataset* dataset);

  /* Writes the state of an iteration whose next batch is `next`, as text
   * (engine/loader/loader_state.h), into `state`, which has room for `capacity` bytes; sets `*size`
   * to its size with the NUL. Writes nothing if it does not fit. */
  stoker_error* (*dataset_state)(stoker_dataset* dataset, const stoker_batch_name* next,
                                 char* state, uint64_t capacity, uint64_t* size);

  /* Returns the batch with which an iteration of this dataset continues after a saved state.
   * `same_ranks`: if not 0, a state of another world or batch size is refused. FAILED_PRECONDITION:
   * the state comes from a loader with other options or samples; the message has both values of
   * each. INVALID_ARGUMENT: the text is not a state. */
  stoker_error* (*dataset_place)(stoker_dataset* dataset, const char* state, int32_t same_ranks,
                                 stoker_batch_name* next);

  /* Sets the trace of all datasets that share the Runtime; NULL: none. `trace` must live as long as
   * the process. */
  void (*dataset_set_trace)(stoker_dataset* dataset, const stoker_trace* trace);

  /* ---- cursors ---- */

  /* Opens a cursor at batch 0 of `epoch`; if that is negative, of the epoch that epoch_take returns
   * at the first cursor_next. Nothing starts before that. `repeat`: not 0 when the same epoch will
   * be iterated again afterwards; it is then prefetched. The cursor keeps the dataset alive. */
  stoker_error* (*cursor_open)(stoker_dataset* dataset, int64_t epoch, int32_t repeat,
                               stoker_cursor** cursor);
  /* Does not wait, except perhaps for the samples in progress. */
  void (*cursor_free)(stoker_cursor* cursor);

  /* Returns the next batch; NULL at the end, however often it is called. `passed`: 1 when the
   * iteration advanced (a batch, or a batch with a bad sample), 0 when the next call tries the same
   * batch again (CANCELLED, a limit); it is set on errors, too. */
  stoker_error* (*cursor_next)(stoker_cursor* cursor, const stoker_interrupt* interrupt,
                               stoker_batch** batch, int32_t* passed);

  /* Returns the batch that the next cursor_next returns. FAILED_PRECONDITION while no epoch is
   * assigned, and once batches were appended. */
  stoker_error* (*cursor_place)(stoker_cursor* cursor, stoker_batch_name* next);

  /* Sets the next batch. O(1); nothing is replayed. `next->index` may be the end. The counter of
   * epochs is not changed. */
  stoker_error* (*cursor_seek)(stoker_cursor* cursor, const stoker_batch_name* next);

  /* From the first call until cursor_seek, the cursor delivers exactly the appended batches, in
   * that order, and NULL when none is left; more may be appended then. */
  stoker_error* (*cursor_append)(stoker_cursor* cursor, const stoker_batch_name* name);

  /* ---- batches ---- */
  stoker_error* (*batch_info)(const stoker_batch* batch, stoker_batch_info* info);
  stoker_error* (*batch_column)(const stoker_batch* batch, int32_t column, stoker_column* out);
  /* Keeps the memory of this column, and of no other, valid after batch_free. NULL: there is no
   * such column, or no memory. */
  stoker_owner* (*batch_owner)(const stoker_batch* batch, int32_t column);
  void (*batch_free)(stoker_batch* batch);
  void (*owner_free)(stoker_owner* owner); /* any time, also while the process exits */

  /* ---- samples ---- */

  /* Writes the path of a sample's file, NUL-terminated, into `path`, which has room for
   * STOKER_MAX_PATH bytes. INVALID_ARGUMENT: there is no such sample. FAILED_PRECONDITION: samples
   * in memory have no files. */
  stoker_error* (*dataset_path)(stoker_dataset* dataset, uint64_t sample, char* path);

  /* Returns element `i`, in C order, of a column of STOKER_STRING or STOKER_BYTES. The bytes are
   * not terminated, and are valid as long as the batch and its dataset. INVALID_ARGUMENT: there is
   * no such column or element, or it has another type. */
  stoker_error* (*batch_string)(const stoker_batch* batch, int32_t column, uint64_t i,
                                const char** bytes, uint64_t* size);

  /* ---- batches on a device: those of a cursor of a loader that copies its batches to one, while
   * dataset_batch_at gives the host's. Their columns' data is the device's, and an owner of one
   * column keeps the whole batch. ---- */

  /* Makes later work of `stream`, one of the batch's device (CUDA: a cudaStream_t), wait until the
   * batch has arrived. When its last owner has been freed, on any thread, the batch's memory is
   * reused after the work that the stream has been given by then; the stream must exist until then.
   * NULL: waits on this thread, for use by the host. FAILED_PRECONDITION: the batch is the host's.
   */
  stoker_error* (*batch_wait_on)(const stoker_batch* batch, void* stream);

  /* ---- what did not arrive, and what waits to be continued ---- */

  /* Takes the last batch of cursor_next back, which did not arrive where it was meant to: the next
   * cursor_next returns it again. Does nothing if it was taken back, or before a batch was returned
   * since the last cursor_seek, and with appended batches. */
  void (*cursor_take_back)(stoker_cursor* cursor);

  /* Returns 1 if a state in the middle of an epoch was restored into the loader, and waits for an
   * iteration to continue there; 0 otherwise. A cursor's first cursor_next would. */
  int32_t (*epoch_restored)(const char* key);

  /* ---- image processors of Hugging Face, from encoded images to the rows that a vision model
   * takes (docs/processors.md). Any thread may use a processor; calls do not wait for each other.
   * Several images are processed on the workers of the process' default Runtime, a single one on
   * the calling thread, which no interrupt ends. All structs of an array have the struct_size of
   * the first one, a multiple of 8; the others' may be 0. ---- */

  /* Makes a processor from the text of a preprocessor_config.json. NULL `options` are all
   * defaults. INVALID_ARGUMENT names the key or the option. */
  stoker_error* (*processor_open)(const char* config, const stoker_processor_options* options,
                                  stoker_processor** processor);
  void (*processor_free)(stoker_processor* processor); /* after its last call has returned */

  /* Computes what an image of this size becomes, turned as its EXIF tag says. Reads no pixels. */
  stoker_error* (*processor_plan)(const stoker_processor* processor, int32_t height, int32_t width,
                                  stoker_array_shape* shape, stoker_image_rows* image);

  /* Computes the shape of the array of these images, from their headers if it depends on them. */
  stoker_error* (*processor_shape)(const stoker_processor* processor, const stoker_encoded* images,
                                   uint64_t count, const stoker_interrupt* interrupt,
                                   stoker_array_shape* shape);

  /* Writes the array of these images to `into`, in C order, of any alignment; its shape to `shape`;
   * and the rows of each image to `rows`, `count` structs, or NULL. INVALID_ARGUMENT: the array has
   * more than `bytes` bytes; nothing is written then. After other errors the content of `into` is
   * unspecified. They name the file, or begin with "images[3]: ", for the first image that failed.
   */
  stoker_error* (*processor_run)(const stoker_processor* processor, const stoker_encoded* images,
                                 uint64_t count, const stoker_interrupt* interrupt, void* into,
                                 uint64_t bytes, stoker_array_shape* shape,
                                 stoker_image_rows* rows);
} stoker_api;

/* Returns NULL if this libstoker does not support that version. */
const stoker_api* stoker_get_api(uint32_t abi_version);

#ifdef __cplusplus
} /* extern "C" */
#endif
/* NOLINTEND(modernize-use-using,readability-identifier-naming) */
