// The fields of a packed set whose samples have several images, as they are stored.
#pragma once

#include <span>
#include <vector>

#include "core/result/result.h"
#include "io/packed/packed_format.h"
#include "io/source/field.h"

namespace stoker {

// Whether a set can have these fields: there are 2 to kMaxPieces, the first is an image, and all
// have different names, which can be those of folders.
bool AreSound(std::span<const packed_set::PieceField> fields);

// Reads the section of fields, if the file has one. DataLoss unless AreSound.
Status ReadPieceFields(const SectionFile& file, std::vector<packed_set::PieceField>& fields);

// Unimplemented for fields that a packed set cannot store: it stores images and masks alone, two of
// them at least, with names of fewer than 56 bytes.
Result<std::vector<packed_set::PieceField>> PieceFieldsOf(std::span<const Field> fields);

// Precondition: AreSound.
std::vector<Field> FieldsOf(std::span<const packed_set::PieceField> fields);

}  // namespace stoker
