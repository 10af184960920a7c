#include "transforms/whole/format.h"

namespace stoker::whole {

const Format kAvif = kAbsent;

}  // namespace stoker::whole
