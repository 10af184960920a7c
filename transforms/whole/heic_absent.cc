#include "transforms/whole/format.h"

namespace stoker::whole {

const Format kHeic = kAbsent;

}  // namespace stoker::whole
