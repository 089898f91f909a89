// SPDX-License-Identifier: Apache-2.0
// A directory may hold several jobs, and several attempts of one: of a job that its launcher or the
// scheduler has started again. One attempt of one job is what figures are of.
#pragma once

#include <string>

#include "formats/trace/trace.h"

namespace gpuprof {

struct JobChoice {
  std::string job;      // its id, or the name of its run; empty: that of the newest whole attempt
  std::string attempt;  // as Header.attempt, or its number in order of time; later ones with the
                        // same number are "0#2", "0#3"; "all": all of the job, as one; empty: the
                        // newest whole one
};

// Takes all processes but those of one attempt out of the trace; where the choice is "all", those
// of other jobs. Notes for the user, a line each: other jobs and attempts, copies of a dump, and
// other versions of the library. Also ranks without a dump, without its end, or with other steps.
// An attempt is whole if each rank of its world has a complete dump. Where dumps do not say which
// attempt they are of, a rank that starts again after it has ended begins the next one. Nothing is
// taken out if the choice names what is not there: that is a problem in the trace, and false.
bool choose_job(Trace& trace, const JobChoice& choice);

}  // namespace gpuprof
