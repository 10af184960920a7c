// The stages that make a loader's batches. producer.cc ties them.
//
// clang-format off
//   Sampler ─► Feeder ─► reader threads ─► WorkerTasks ─► Decoder ─► BatchFinisher ─► Assembler ─► Next
//   order        ▲       bytes             turns          rows │        │       ▲     in order      │
//                │                                             │        ▼       │                   │
//                └─ to be read again: substitutes, lost from ◄─┘        MapThreads                  │
//                   the cache, or without memory                                                    │
//                       depth, workers, reads ◄─ SettingsController ◄─ what the batch cost ─────────┘
//
// stage              | consumes              | produces               | thread           | ends when
// -------------------|-----------------------|------------------------|------------------|------------------
// Feeder             | rows to claim, in     | samples whose bytes    | reader; takes    | no thread pulls:
//                    | order; samples that   | have arrived           | back on any      | Lifecycle's
//                    | workers give back     |                        |                  | no_more
// WorkerTasks        | these samples         | turns of workers       | any → worker     | no sample is ready
// Decoder            | the samples of a turn | rows, or why not:      | worker           | the turn is over
//                    |                       | SampleOutcome          |                  |
// BatchFinisher      | rows that have ended  | batches without        | worker; given up | no sample is in
//                    |                       | missing rows, mixed    | on any           | work
// MapThreads, for a  | these batches         | the same, changed      | its own          | closed, and its
// function of batches|                       |                        |                  | calls returned
// Assembler          | claims, ended rows    | Batch, in order        | any; Take on the | cancelled, or its
//                    |                       |                        | consumer's       | sequence ends
// SettingsController | a BatchRecord of each | depth, workers, reads  | the consumer's,  | never
//                    | batch taken           |                        | or the copier's  |
// clang-format on
//
// Around them, Lifecycle decides when work may run, BadSamples how unusable samples are handled,
// and UnfinishedWork reports what has not ended when nothing moves.
//
// The stages pass samples of SamplesInFlight on, by index. Each becomes one row, and belongs to one
// stage at a time. If it has several pieces (SampleSource::pieces), they are read at the same time,
// and one worker decodes them all.
#pragma once

#include "engine/production/batch_finisher.h"
#include "engine/production/batches/assembler.h"
#include "engine/production/batches/bad_samples.h"
#include "engine/production/batches/map_threads.h"
#include "engine/production/decoder.h"
#include "engine/production/feeder.h"
#include "engine/production/lifecycle.h"
#include "engine/production/samples/samples_in_flight.h"
#include "engine/production/samples/worker_tasks.h"
#include "engine/production/settings_controller.h"
#include "engine/production/unfinished_work.h"
