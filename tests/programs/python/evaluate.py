# SPDX-License-Identifier: Apache-2.0
"""Calls of a model with gradients and without, and steps of an optimizer, on a GPU. Arguments: libc10's look-alike, way."""
import contextlib
import ctypes
import pathlib
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
import torch.nn

gradients = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL).c10_like_want_gradients


class Net(torch.nn.Module):
    def forward(self):
        time.sleep(0.01)


@contextlib.contextmanager
def no_grad():
    gradients(0)
    yield
    gradients(1)


def train(model, optimizer, steps):
    for _ in range(steps):
        model()
        optimizer.step()


def evaluate(model, calls):
    with no_grad():
        for _ in range(calls):
            model()


def silence(model, optimizer):
    """An evaluation of some seconds within the first steps."""
    train(model, optimizer, 10)
    evaluate(model, 700)
    train(model, optimizer, 30)


def first(model, optimizer):
    """Some batches of an evaluation before the training."""
    time.sleep(1.5)  # the model's calls are looked for
    evaluate(model, 60)
    train(model, optimizer, 40)


def thread(model, _):
    """A loop that is not the main thread's, which waits for it from CUDA's first use on."""
    worker = threading.Thread(target=generate, args=(model,))
    worker.start()
    worker.join()


def generate(model):
    use_cuda()
    evaluate(model, 5)
    for _ in range(40):
        id(model)
        evaluate(model, 1)


def interrupted(model, _):
    """Ctrl-C while gpuprof looks through the classes of modules, each of which it asks for its id."""
    wanted, came = id(type(model)), []

    def on_event(event, arguments):
        if event == "builtins.id" and arguments == (wanted,) and not came:
            came.append(event)
            signal.raise_signal(signal.SIGINT)

    sys.addaudithook(on_event)
    try:
        use_cuda()
        for _ in range(100):
            time.sleep(0.01)
        print("went on", came)
    except KeyboardInterrupt:
        print("interrupted", came)
    evaluate(model, 40)


def capture(stream):
    cuda, graph, replay = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p(), ctypes.c_void_p()
    made = [cuda.cudaStreamBeginCapture(stream, 0), cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)),
            cuda.cudaGraphInstantiate(ctypes.byref(replay), graph, ctypes.c_ulonglong(0))]
    assert made == [0, 0, 0], made


def engine(model, _):
    """A warm-up, and two captures, for each of 20 batch sizes; then requests come."""
    time.sleep(1.5)  # the model's calls are looked for
    stream = ctypes.c_void_p()
    ctypes.CDLL("libcudart.so.13").cudaStreamCreate(ctypes.byref(stream))
    for _ in range(20):
        evaluate(model, 3)
        capture(stream)
    time.sleep(1)
    evaluate(model, 40)


def late(model, _):
    """One call, which compiles the model; then it is loaded, or nobody asks for anything; then requests come."""
    import gpu
    time.sleep(1.5)
    evaluate(model, 1)
    until = time.monotonic() + 35
    while time.monotonic() < until:
        if sys.argv[3] == "busy":
            gpu.give()
        time.sleep(0.1)
    evaluate(model, 60)


def imported(_, __):
    """A class of a model that is imported late, and has others inside."""
    for _ in range(680):
        time.sleep(0.1)

    class Late(torch.nn.Module):
        def forward(self):
            for _ in range(3):
                inner()

    inner, late_model = Net(), Late()
    for _ in range(70):
        time.sleep(0.1)
    evaluate(late_model, 40)


def use_cuda():
    if ctypes.CDLL("libcudart.so.13").cudaFree(None) != 0:
        sys.exit("no CUDA")


if sys.argv[2] not in ("thread", "interrupted"):
    use_cuda()
optimizer = torch.optim.SGD() if sys.argv[2] in ("silence", "first") else None
{f.__name__: f for f in (silence, first, thread, interrupted, engine, late, imported)}[sys.argv[2]](Net(), optimizer)
