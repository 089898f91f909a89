# SPDX-License-Identifier: Apache-2.0
"""Checks what gpuprof takes for granted of libcupti against NVIDIA's own libraries and headers, from the wheels of
several releases: records keep their fields where the headers that gpuprof is built with have them, callback ids keep
their meaning, and the library has the functions that are looked up. No GPU and no driver is needed.

    cupti_layout.py [CACHE]    exit 0 all is so, 1 something is not, 77 the wheels cannot be had"""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WHEELS = ["nvidia-cuda-cupti-cu12==12.4.127", "nvidia-cuda-cupti-cu12==12.8.90", "nvidia-cuda-cupti==13.0.85",
          "nvidia-cuda-cupti==13.2.86", "nvidia-cuda-cupti==13.3.75", "nvidia-cuda-cupti==13.5.25"]
# cuptiGetVersion; and with which names of the records that are read the header of 13.0 spells them.
VERSIONS = {"12.4.127": 22, "12.8.90": 26, "13.0.85": 130001, "13.2.86": 130202,
            "13.3.75": 130301, "13.5.25": 130500}
OPTIONAL = {"Subscribe_v2": 130000, "GetGraphExecId": 21, "ActivityEnableCudaEventDeviceTimestamps": 130000, "Finalize": 0}
FIELDS = {
    "Kernel": "registersPerThread start end deviceId contextId streamId gridX blockX staticSharedMemory dynamicSharedMemory "
              "localMemoryPerThread correlationId name graphNodeId graphId channelID channelType clusterX",
    "Memcpy": "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId graphNodeId graphId",
    "MemcpyPtoP": "copyKind bytes start end deviceId contextId streamId srcDeviceId dstDeviceId correlationId graphNodeId graphId",
    "Memset": "value bytes start end deviceId contextId streamId correlationId memoryKind graphNodeId graphId",
    "GraphTrace": "correlationId start end deviceId graphId contextId streamId",
    "Synchronization": "type start end correlationId contextId streamId cudaEventId",
    "CudaEvent": "correlationId contextId streamId eventId",
    "Memory": "memoryOperationType memoryKind correlationId address bytes timestamp deviceId contextId streamId memoryPoolConfig",
    "Overhead": "overheadKind objectKind objectId start end",
}
CALLBACKS = ["RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000", "RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060",
             "RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000", "RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020",
             "DRIVER_TRACE_CBID_cuLaunchKernel", "DRIVER_TRACE_CBID_cuLaunchKernelEx", "DRIVER_TRACE_CBID_cuGraphLaunch",
             "CBID_RESOURCE_GRAPHNODE_CREATED", "CBID_RESOURCE_GRAPHNODE_CLONED", "CBID_RESOURCE_GRAPHEXEC_CREATED",
             "CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING"]
KINDS = ["MEMCPY", "MEMSET", "CONCURRENT_KERNEL", "MEMCPY2", "OVERHEAD", "CUDA_EVENT", "SYNCHRONIZATION", "MEMORY2",
         "GRAPH_TRACE"]


# The functions of one subscriber and their structs: ours, and NVIDIA's from 13.3 on.
V2_SINCE = 130300
V2_STRUCTS = {
    "CuptiV2SubscriberParams": ("CUpti_SubscriberParams", "structSize subscriberName oldSubscriberName oldSubscriberSize "
                                "allowMultipleSubscribers padding"),
    "CuptiV2RequestInfo": ("CUpti_BufferCallbackRequestInfo", "structSize"),
    "CuptiV2CompleteInfo": ("CUpti_BufferCallbackCompleteInfo", "structSize threadId ppRecordLayouts numRecordLayouts"),
}
V2_ATTRIBUTES = {"user_defined_records": "USER_DEFINED_RECORDS",
                 "kernel_latency_timestamps": "ENABLE_KERNEL_LATENCY_TIMESTAMPS",
                 "multiple_subscriber_state": "MULTIPLE_SUBSCRIBER_STATE",
                 "cuda_event_device_timestamps": "ENABLE_CUDA_EVENT_DEVICE_TIMESTAMPS",
                 "multi_subscriber_graph_trace": "ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE",
                 "timestamp_callback": "TIMESTAMP_CALLBACK"}


def newest(headers, record):
    """The newest record of this kind in these headers, that which CUPTI of that release delivers."""
    text = (headers / "cupti_activity.h").read_text(errors="replace")
    found = re.findall(rf"\}}\s*(CUpti_Activity{record}(\d*))\s*;", text)
    if record == "Memory":  # CUpti_ActivityMemory is of another kind
        found = [name for name in found if name[1]]
    return max(found, key=lambda name: int(name[1] or 0))[0]


def cuda_headers():
    """Where cmake/gpuprof_cuda_headers.cmake looks, but for a folder that the build was told."""
    homes = [pathlib.Path(os.environ[name]) / "include" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [*homes, pathlib.Path("/usr/local/cuda/include"), SOURCE / ".deps/cuda/include", pathlib.Path("/usr/local/include"),
               pathlib.Path("/usr/include")]
    found = next((folder for folder in folders if (folder / "cuda.h").exists()), None)
    if not found:
        sys.exit(f"cuda.h is in none of {', '.join(map(str, folders))}: run tools/setup.sh")
    return found


def facts(headers, names):
    """Offsets, sizes and numbers by these headers, as lines."""
    cuda = cuda_headers()
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <cuda.h>",
             *(f"#include <cupti_{part}.h>" for part in ("activity", "callbacks", "runtime_cbid", "driver_cbid")), "int main(void) {"]
    for record, fields in FIELDS.items():
        for field in fields.split():
            lines.append(f'printf("{record}.{field} %zu\\n", offsetof({names[record]}, {field}));')
    lines += [f'printf("{name} %d\\n", (int)CUPTI_{name});' for name in CALLBACKS]
    lines += [f'printf("kind.{name} %d\\n", (int)CUPTI_ACTIVITY_KIND_{name});' for name in KINDS]
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "facts.c", pathlib.Path(folder) / "facts"
        source.write_text("\n".join(lines + ["return 0; }"]))
        # Only a few headers of CUPTI need those of CUDA, which the wheel does not have.
        done = subprocess.run(["cc", "-w", f"-I{headers}", "-idirafter", cuda, source, "-o", program],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{headers}: {done.stderr[:800]}")
        return dict(line.rsplit(" ", 1) for line in subprocess.check_output([program], text=True).splitlines())


def v2_functions():
    """What collector/cupti/cupti_v2.h looks up."""
    return re.findall(r"X\((\w+),", (SOURCE / "collector/cupti/cupti_v2.h").read_text())


def check_v2(headers, release):
    """What collector/cupti/cupti_v2.h says of the functions of one subscriber, by the compiler."""
    lines = ['#include "collector/cupti/cupti_v2.h"', "#include <type_traits>", "using namespace gpuprof;",
             "template <class A, class B> struct Like : std::false_type {};",
             "template <class R, class... A, class... B> requires(sizeof...(A) == sizeof...(B))",
             "struct Like<R (*)(A...), R (*)(B...)> : std::bool_constant<((sizeof(A) == sizeof(B) && "
             "std::is_pointer_v<A> == std::is_pointer_v<B>) && ...)> {};"]
    for ours, (theirs, fields) in V2_STRUCTS.items():
        lines.append(f"static_assert(sizeof({ours}) == sizeof({theirs}));")
        lines += [f"static_assert(offsetof({ours}, {field}) == offsetof({theirs}, {field}));" for field in fields.split()]
    lines += [f"static_assert(int(CuptiV2Attribute::{ours}) == CUPTI_ACTIVITY_ATTR_{theirs});"
              for ours, theirs in V2_ATTRIBUTES.items()]
    lines.append("static_assert(CUpti_SubscriberParams_STRUCT_SIZE == kCuptiV2SubscriberParamsSize);")
    lines += [f"static_assert(Like<decltype(CuptiV2Api::{name}), decltype(&cupti{name})>::value);" for name in v2_functions()]
    for ours, theirs in (("CuptiV2Request", "Request"), ("CuptiV2Complete", "Complete")):
        lines.append(f"static_assert(Like<{ours}, CUpti_BuffersCallback{theirs}Func_v2>::value);")
    with tempfile.TemporaryDirectory() as folder:
        # Of CUPTI's headers only these do without CUDA's of the same release, which the wheel does not have.
        (pathlib.Path(folder) / "cupti.h").write_text("#include <cuda.h>\n#include <cupti_activity.h>\n#include <cupti_callbacks.h>\n")
        done = subprocess.run(["c++", "-w", "-std=c++20", "-fsyntax-only", f"-I{folder}", f"-I{headers}", f"-I{SOURCE}",
                               "-idirafter", cuda_headers(), "-x", "c++", "-"],
                              input="\n".join(lines), capture_output=True, text=True)
    return [f"{release}: {line}" for line in done.stderr.splitlines() if "error" in line]


def functions():
    """What collector/cupti/cupti_api.h looks up."""
    text = (SOURCE / "collector/cupti/cupti_api.h").read_text()
    required = re.findall(r"X\((\w+)\)", text.split("#define GPUPROF_DECLARE")[0])
    return [name for name in required if name != "X"], re.findall(r"decltype\(&::cupti(\w+)\)\s+\w+;", text)


def check_library(path, version, release):
    required, optional = functions()
    assert len(required) > 10 and set(optional) == set(OPTIONAL), (required, optional)
    assert len(v2_functions()) > 5
    wanted = required + [name for name in optional if version >= OPTIONAL[name]]
    wanted += v2_functions() if version >= V2_SINCE else []
    # In a process of its own: of two libraries of one soname the second would be the first.
    done = subprocess.run([sys.executable, __file__, "--ask", path, *wanted], capture_output=True, text=True)
    if done.returncode != 0:
        return [f"{release}: {path} cannot be loaded without a driver: {done.stderr.strip()[-300:]}"]
    said, *missing = done.stdout.split()
    problems = [f"{release}: libcupti has no function cupti{name}" for name in missing]
    # Of those that are checked 13.3 and 13.5 do not say their version without a driver (CUPTI_ERROR_UNKNOWN), and 13.2
    # does not return. That it is this one is told by its functions (collector/cupti/cupti_api.cpp).
    silent = said == "not-asked" and version // 100 == 1302
    if said != str(version) and not silent and not (said == "error-999" and version >= V2_SINCE):
        problems.append(f"{release}: cuptiGetVersion says {said}, {version} is expected")
    return problems


def ask(path, names):
    """Prints the version of a library, and which functions it does not have."""
    library, number = ctypes.CDLL(path), ctypes.c_uint32()
    returns = hasattr(library, "cuptiGetTimestamp_v2") or not hasattr(library, "cuptiActivityRegisterCallbacks_v2")
    result = library.cuptiGetVersion(ctypes.byref(number)) if returns else None
    said = number.value if result == 0 else f"error-{result}" if returns else "not-asked"
    print(said, *(name for name in names if not hasattr(library, "cupti" + name)))


def fetch(wheel, cache):
    """The folder with the wheel's content. None: it cannot be had."""
    folder = cache / wheel.replace("==", "-")
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=cache) as partial:
            done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                                   "--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_18_x86_64",
                                   "--platform", "manylinux_2_25_x86_64", "--platform", "manylinux_2_27_x86_64", "-d", partial, wheel], capture_output=True)
            found = list(pathlib.Path(partial).glob("*.whl"))
            if done.returncode != 0 or not found:
                return None
            zipfile.ZipFile(found[0]).extractall(pathlib.Path(partial) / "content")
            (pathlib.Path(partial) / "content").rename(folder)
    return folder


def unpack(wheel, cache):
    """The folder that the wheel's CUPTI lies in. None: it cannot be had."""
    folder = fetch(wheel, cache)
    return folder and next(folder.rglob("cupti.h")).parent.parent


def default_cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "gpuprof/cupti"


def main():
    cache = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default_cache()
    cache.mkdir(parents=True, exist_ok=True)
    folders = {wheel: unpack(wheel, cache) for wheel in WHEELS}
    missing = [wheel for wheel, folder in folders.items() if folder is None]
    if missing:
        print(f"skipped: these wheels cannot be had here: {', '.join(missing)}")
        return 77
    built_with = folders[WHEELS[2]] / "include"
    ours = facts(built_with, {record: newest(built_with, record) for record in FIELDS})
    problems = []
    for wheel, folder in folders.items():
        release = wheel.split("==")[1]
        headers = folder / "include"
        theirs = facts(headers, {record: newest(headers, record) for record in FIELDS})
        problems += [f"{release}: {name} is {theirs.get(name)}, {value} in the headers of 13.0"
                     for name, value in ours.items() if theirs.get(name) != value]
        if VERSIONS[release] >= V2_SINCE:
            problems += check_v2(headers, release)
        problems += check_library(next((folder / "lib").glob("libcupti.so.1*")), VERSIONS[release], release)
        print(f"{release}: {len(theirs)} offsets and numbers, {len(functions()[0])} functions")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(ask(sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == ["--ask"] else main())
