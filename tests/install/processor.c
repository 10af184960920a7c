/* The example of docs/processors.md: Qwen2-VL's patches of the files that are given. */
#include <stoker/stoker_c.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const stoker_api* api;

static void check(stoker_error* error) {
  if (error == NULL) return;
  puts(api->error_message(error));
  api->error_free(error);
  exit(1);
}

int main(int count, char** words) {
  api = stoker_get_api(STOKER_ABI_VERSION);
  if (api == NULL) return 2;
  stoker_processor* processor = NULL;
  const char* const json = "{\"image_processor_type\": \"Qwen2VLImageProcessor\"}";
  check(api->processor_open(json, NULL, &processor));

  const uint64_t images = (uint64_t)count - 1;
  stoker_encoded* const files = calloc(images, sizeof(stoker_encoded));
  for (uint64_t i = 0; i < images; ++i) {
    files[i].struct_size = sizeof(stoker_encoded);
    files[i].path = words[i + 1];
  }
  stoker_array_shape shape = {.struct_size = sizeof(shape)};
  check(api->processor_shape(processor, files, images, NULL, &shape));
  void* const rows = malloc(shape.bytes);
  check(api->processor_run(processor, files, images, NULL, rows, shape.bytes, &shape, NULL));
  printf("%d images: %d patches of %d values\n", (int)images, (int)shape.dims[0],
         (int)shape.dims[1]);
  free(rows);
  free(files);
  api->processor_free(processor);
  return 0;
}
