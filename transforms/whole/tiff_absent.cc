#include "transforms/whole/format.h"

namespace stoker::whole {

const Format kTiff = kAbsent;

}  // namespace stoker::whole
