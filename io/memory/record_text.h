// Converts the fields of a record to and from text, for loader specs: "label uint8, image uint8 3
// 32 32".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/source/field.h"

namespace stoker {

// Parses fields: each is a name, NumPy's name of a type, and the dimensions of a row, if it is not
// a single number. InvalidArgument says which field is wrong. Dimensions are not checked otherwise.
Result<std::vector<Field>> ParseRecord(std::string_view text);

// Writes the text that ParseRecord parses. Precondition: no name has a space, a comma or a control
// character.
std::string RecordText(std::span<const Field> record);

}  // namespace stoker
