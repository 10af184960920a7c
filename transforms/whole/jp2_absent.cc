#include "transforms/whole/format.h"

namespace stoker::whole {

const Format kJp2 = kAbsent;

}  // namespace stoker::whole
