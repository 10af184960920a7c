#include "transforms/whole/format.h"

namespace stoker::whole {

const Format kGif = kAbsent;

}  // namespace stoker::whole
