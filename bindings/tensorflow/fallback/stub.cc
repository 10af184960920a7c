// A stub of libtensorflow_framework.so.2 for linking the fallback: the same name and the symbols
// that the fallback needs, without an implementation. Never installed, never loaded.
extern "C" {
void TF_NewStatus() {}
void TF_DeleteStatus() {}
void TF_SetStatus() {}
void TF_GetCode() {}
void TF_NewTensor() {}
void TF_TensorData() {}
void TF_TensorByteSize() {}
void TF_DeleteTensor() {}
void TF_NewOpDefinitionBuilder() {}
void TF_OpDefinitionBuilderAddInput() {}
void TF_OpDefinitionBuilderAddOutput() {}
void TF_OpDefinitionBuilderAddAttr() {}
void TF_OpDefinitionBuilderSetShapeInferenceFunction() {}
void TF_ShapeInferenceContextSetUnknownShape() {}
void TF_RegisterOpDefinition() {}
void TF_NewKernelBuilder() {}
void TF_RegisterKernelBuilder() {}
void TF_OpKernelConstruction_GetAttrSize() {}
void TF_OpKernelConstruction_GetAttrString() {}
void TF_OpKernelConstruction_Failure() {}
void TF_OpKernelContext_Failure() {}
void TF_NumOutputs() {}
void TF_ExpectedOutputDataType() {}
void TF_GetInput() {}
void TF_SetOutput() {}
void TF_AllocateOutput() {}
void TF_OpKernelConstruction_GetAttrBool() {}
}
