// The part of TensorFlow's C API that the fallback uses, declared here so that it builds without
// TensorFlow. These functions are the same in every TensorFlow 2 that has kernels in C (tested with
// 2.18 to 2.21); the implementations come with the TensorFlow that loads the plugin.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct TF_KernelBuilder;
struct TF_OpDefinitionBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_ShapeInferenceContext;
struct TF_Status;
struct TF_Tensor;

// An element of a string tensor that owns memory from malloc, in TensorFlow's layout since 2.2
// (ctstring_internal.h); its functions are in a library that plugins cannot link to.
struct TF_TString {
  uint64_t size_and_type;  // size * 4 + kOwnedString
  uint64_t capacity;
  char* data;  // NUL-terminated
};
static_assert(sizeof(TF_TString) == 24);
inline constexpr uint64_t kOwnedString = 1;

TF_Status* TF_NewStatus();
void TF_DeleteStatus(TF_Status* status);
void TF_SetStatus(TF_Status* status, int code, const char* message);
int TF_GetCode(const TF_Status* status);

// Takes ownership of `data`; calls `deallocator` when the last tensor over it is gone.
TF_Tensor* TF_NewTensor(int dtype, const int64_t* dims, int rank, void* data, size_t bytes,
                        void (*deallocator)(void* data, size_t bytes, void* argument),
                        void* argument);
void* TF_TensorData(const TF_Tensor* tensor);
size_t TF_TensorByteSize(const TF_Tensor* tensor);
void TF_DeleteTensor(TF_Tensor* tensor);

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* name);
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input);
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output);
void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attribute);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder* builder,
                                                     void (*infer)(TF_ShapeInferenceContext*,
                                                                   TF_Status*));
void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* context, TF_Status* status);
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status);

TF_KernelBuilder* TF_NewKernelBuilder(const char* op, const char* device,
                                      void* (*create)(TF_OpKernelConstruction*),
                                      void (*compute)(void* kernel, TF_OpKernelContext*),
                                      void (*destroy)(void* kernel));
void TF_RegisterKernelBuilder(const char* name, TF_KernelBuilder* builder, TF_Status* status);

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* context, const char* attribute,
                                         int32_t* list_size, int32_t* total_size,
                                         TF_Status* status);
void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* context, const char* attribute,
                                           char* value, size_t max_length, TF_Status* status);
void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* context, const char* attribute,
                                         unsigned char* value, TF_Status* status);
void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* context, TF_Status* status);
void TF_OpKernelContext_Failure(TF_OpKernelContext* context, TF_Status* status);
int TF_NumOutputs(TF_OpKernelContext* context);
int TF_ExpectedOutputDataType(TF_OpKernelContext* context, int output);
void TF_GetInput(TF_OpKernelContext* context, int input, TF_Tensor** tensor, TF_Status* status);
// Allocates in TensorFlow's own memory; strings are empty.
TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int output, int dtype,
                             const int64_t* dims, int rank, size_t bytes, TF_Status* status);
void TF_SetOutput(TF_OpKernelContext* context, int output, const TF_Tensor* tensor,
                  TF_Status* status);

}  // extern "C"
