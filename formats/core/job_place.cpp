// SPDX-License-Identifier: Apache-2.0
// The process's place in its job, and output names made from it.
#include "formats/core/runs/node_name.h"
#include "formats/core/settings.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

// In order of preference: what the framework was told beats what the launcher below it says.
constexpr std::string_view kRankNames[] = {
    "RANK",                  // torchrun, DeepSpeed, Ray Train, PyTorchJob
    "JAX_PROCESS_ID",        // JAX
    "HOROVOD_RANK",          // Horovod
    "OMPI_COMM_WORLD_RANK",  // Open MPI, and the MPIJob that uses it
    "PMI_RANK",              // MPICH, Intel MPI
    "MV2_COMM_WORLD_RANK",   // MVAPICH
    "PALS_RANKID",           // HPE Cray
    "JSM_NAMESPACE_RANK",    // IBM
    "FLUX_TASK_RANK",        // Flux
    "PMIX_RANK",             // any PMIx server
    "SLURM_PROCID"};
constexpr std::string_view kLocalRankNames[] = {"LOCAL_RANK",
                                                "HOROVOD_LOCAL_RANK",
                                                "OMPI_COMM_WORLD_LOCAL_RANK",
                                                "MPI_LOCALRANKID",
                                                "MV2_COMM_WORLD_LOCAL_RANK",
                                                "PALS_LOCAL_RANKID",
                                                "JSM_NAMESPACE_LOCAL_RANK",
                                                "FLUX_TASK_LOCAL_ID",
                                                "SLURM_LOCALID"};
constexpr std::string_view kWorldNames[] = {
    "WORLD_SIZE",           "JAX_NUM_PROCESSES", "HOROVOD_SIZE",
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",          "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_SIZE",   "FLUX_JOB_SIZE",     "SLURM_STEP_NUM_TASKS",
    "SLURM_NTASKS"};
// GROUP_RANK: torchrun's agent; CROSS_RANK: DeepSpeed; the last: an indexed Job, also of a JobSet.
constexpr std::string_view kNodeNames[] = {"GROUP_RANK",          "NODE_RANK",   "CROSS_RANK",
                                           "HOROVOD_CROSS_RANK",  "PALS_NODEID", "SLURM_NODEID",
                                           "JOB_COMPLETION_INDEX"};
constexpr std::string_view kJobNames[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID",
                                          "COBALT_JOBID"};
// Ids of a launcher, where no scheduler and no pod has one.
constexpr std::string_view kLauncherJobNames[] = {"PMIX_NAMESPACE"};
constexpr std::string_view kSchedulerAttemptNames[] = {"SLURM_RESTART_COUNT"};
constexpr std::string_view kLauncherAttemptNames[] = {"TORCHELASTIC_RESTART_COUNT"};

template <size_t N>
int find_number(char* const* environment, const std::string_view (&names)[N], int otherwise) {
  for (const std::string_view name : names) {
    const char* text = find_in_environment(environment, name);
    uint64_t value = 0;
    if (text != nullptr && parse_whole(text, value) && value < 1u << 30) {
      return static_cast<int>(value);
    }
  }
  return otherwise;
}

std::string_view text_of(char* const* environment, std::string_view name) {
  const char* value = find_in_environment(environment, name);
  return value != nullptr ? value : "";
}

// Takes "-<digits>" off the end.
bool drop_index(std::string_view& name) {
  size_t end = name.size();
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  if (end == name.size() || end < 2 || name[end - 1] != '-') return false;
  name = slice(name, 0, end - 1);
  return true;
}

// What a pod's name ends with that its host name mostly lacks: "-" and 5 random characters of an
// alphabet without vowels.
constexpr size_t kSuffix = 6;
bool has_random_suffix(std::string_view pod) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  if (pod.size() <= kSuffix || pod[pod.size() - kSuffix] != '-') return false;
  for (const char c : slice(pod, pod.size() - kSuffix + 1)) {
    bool known = false;
    for (const char letter : kAlphabet) known = known || c == letter;
    if (!known) return false;
  }
  return true;
}

// A pod is named after its job: <job>-<index> or <job>-<role>-<index>, then perhaps the suffix.
std::string_view job_of_pod(std::string_view pod) {
  if (drop_index(pod)) {
    constexpr std::string_view kRoles[] = {"-worker", "-master", "-launcher"};
    for (const std::string_view role : kRoles) {
      if (pod.size() > role.size() && slice(pod, pod.size() - role.size()) == role) {
        pod.remove_suffix(role.size());
      }
    }
    return pod;
  }
  if (!has_random_suffix(pod)) return pod;
  pod.remove_suffix(kSuffix);
  drop_index(pod);
  return pod;
}

// A JobSet's pods are <JobSet>-<name>-<job's index>-<pod's index>, of a subdomain that is the
// JobSet's name: what all of them call the first pod tells it (jobset.sigs.k8s.io/docs/concepts).
// Empty: they do not call it so.
std::string_view job_set_of_pod(std::string_view pod, char* const* environment) {
  const auto is_pod_of = [](std::string_view name, std::string_view job_set) {
    return drop_index(name) && drop_index(name) && name.size() > job_set.size() + 1 &&
           starts_with(name, job_set) && name[job_set.size()] == '-';
  };
  for (const std::string_view variable : {"MASTER_ADDR", "JAX_COORDINATOR_ADDRESS"}) {
    std::string_view address = text_of(environment, variable);
    address = take_until(address, ':');
    const std::string_view first = take_until(address, '.'), job_set = take_until(address, '.');
    if (job_set.empty() || !is_pod_of(first, job_set)) continue;
    const std::string_view own = slice(pod, 0, pod.size() - (has_random_suffix(pod) ? kSuffix : 0));
    if (is_pod_of(own, job_set)) return job_set;
  }
  return {};
}

std::string_view find_pods_job(char* const* environment, const char* hosts_file) {
  if (text_of(environment, "KUBERNETES_SERVICE_HOST").empty() || has_name_of_node(hosts_file)) {
    return {};
  }
  const std::string_view pod = text_of(environment, "HOSTNAME");
  const std::string_view job_set = job_set_of_pod(pod, environment);
  return job_set.empty() ? job_of_pod(pod) : job_set;
}

// The job's id, in one part or two.
struct JobId {
  std::string_view text, of_ray;
};

JobId find_job(char* const* environment, const char* hosts_file) {
  for (const std::string_view name : kJobNames) {
    const std::string_view job = text_of(environment, name);
    if (!job.empty()) return {job, {}};
  }
  // Before the pod's name, from which a job can only be guessed. "none" is torchrun's default, not
  // an id; --standalone makes one up for its only node.
  const std::string_view run = text_of(environment, "TORCHELASTIC_RUN_ID");
  if (!run.empty() && run != "none") return {run, {}};
  // A cluster of pods may run several jobs. Ray counts its own from 1 in each cluster, so that this
  // number alone is no id.
  const std::string_view pods = find_pods_job(environment, hosts_file);
  if (!pods.empty()) return {pods, text_of(environment, "RAY_JOB_ID")};
  for (const std::string_view name : kLauncherJobNames) {
    const std::string_view job = text_of(environment, name);
    if (!job.empty()) return {job, {}};
  }
  return {};
}

// The launcher counts anew after the scheduler has started the job again.
void find_attempt(char* const* environment, JobPlace& place) {
  const int scheduler = find_number(environment, kSchedulerAttemptNames, -1);
  const int launcher = find_number(environment, kLauncherAttemptNames, -1);
  TextBuilder out(place.attempt, sizeof(place.attempt));
  if (scheduler > 0) out.add_whole(static_cast<uint64_t>(scheduler));
  if (scheduler > 0 && launcher >= 0) out.add('.');
  if (launcher >= 0) {
    out.add_whole(static_cast<uint64_t>(launcher));
  } else if (scheduler == 0) {
    out.add('0');
  }
}

// What stands for the sequence at the front of `rest` (after the %), which is taken off.
bool add_sequence(std::string_view& rest, const JobPlace& place, const char* host, int pid,
                  char* const* environment, TextBuilder& out, TextBuilder& problem) {
  const char c = rest.empty() ? '\0' : rest[0];
  if (starts_with(rest, "q{")) {
    rest = slice(rest, 2);
    const size_t length = rest.size();
    const std::string_view name = take_until(rest, '}');
    if (name.size() == length) {
      problem.add("%q{ has no closing }");
      return false;
    }
    const char* value = find_in_environment(environment, name);
    if (value == nullptr) {
      problem.add(slice(name, 0, 80)).add(" is not set in the environment; set it or leave %q out");
      return false;
    }
    out.add(value);
    return true;
  }
  rest = slice(rest, 1);
  switch (c) {
    case 'h': out.add(host); return true;
    case 'r': out.add_whole(place.rank < 0 ? 0 : static_cast<uint64_t>(place.rank)); return true;
    case 'p': out.add_whole(static_cast<uint64_t>(pid)); return true;
    case 'j': out.add(place.job[0] != '\0' ? place.job : "nojob"); return true;
    case '%': out.add('%'); return true;
    default:
      problem.add("after % allowed are h (host), r (rank), p (pid), j (job), q{VARIABLE} and %");
      return false;
  }
}

}  // namespace

JobPlace find_job_place(char* const* environment, const char* hosts_file) {
  JobPlace place{};
  place.rank = find_number(environment, kRankNames, -1);
  place.local_rank = find_number(environment, kLocalRankNames, -1);
  place.world_size = find_number(environment, kWorldNames, 0);
  place.node = find_number(environment, kNodeNames, -1);
  if (place.rank >= place.world_size) place.world_size = 0;  // they are not of the same job
  find_attempt(environment, place);
  TextBuilder job(place.job, sizeof(place.job));
  const JobId id = find_job(environment, hosts_file);
  for (const std::string_view part : {id.text, id.of_ray}) {
    if (part.empty()) continue;
    if (place.job[0] != '\0') job.add('.');
    for (const char c : part) {
      // It becomes the name of a directory.
      job.add(c == '/' || static_cast<unsigned char>(c) <= ' ' ? '_' : c);
    }
  }
  return place;
}

JobPlace find_job_place(char* const* environment) {
  return find_job_place(environment, "/etc/hosts");
}

bool expand_output(const char* pattern, const JobPlace& place, const char* host, int pid,
                   char* const* environment, char* out, size_t size, SettingError& error) {
  char text[256];
  TextBuilder problem(text, sizeof(text));
  TextBuilder result(out, size);
  std::string_view rest = pattern;
  bool good = true;
  while (good && !rest.empty()) {
    const char c = rest[0];
    rest = slice(rest, 1);
    if (c == '%') {
      good = add_sequence(rest, place, host, pid, environment, result, problem);
    } else {
      result.add(c);
    }
  }
  if (good && result.truncated()) {
    good = false;
    problem.add("is too long once expanded");
  }
  if (!good) {
    TextBuilder(error.text, sizeof(error.text)).add_quoted(pattern).add(": ").add(text);
  }
  return good;
}

}  // namespace gpuprof
