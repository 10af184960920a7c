#include "engine/loader/map_function.h"

#include "core/slot_pool.h"

namespace stoker {

void* MappedRow::data(size_t column) const { return slot_.Row(column, row_); }

uint64_t MappedRow::sample() const { return slot_.sample_ids[row_]; }

BatchName MappedRow::batch() const { return slot_.name(); }

}  // namespace stoker
