// SPDX-License-Identifier: Apache-2.0
// Whose host name a Kubernetes pod has: its own, which tells its job, or its node's.
#pragma once

#include "formats/core/settings.h"

namespace gpuprof {

// Whether the pod has its node's network, and so the node's name, by its /etc/hosts. False where
// that cannot be read. May change errno.
bool has_name_of_node(const char* hosts_file);

// As find_job_place() of settings.h, with another /etc/hosts.
JobPlace find_job_place(char* const* environment, const char* hosts_file);

}  // namespace gpuprof
