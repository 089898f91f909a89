# SPDX-License-Identifier: Apache-2.0
"""Loops whose GPU waits for one line, that with the comment SLOW of the case. Arguments: case, steps.
Each slow line takes some 20 ms; the other lines of a step next to nothing."""
import asyncio
import functools
import hashlib
import json
import pathlib
import re
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gpu

NUMBERS = [i * 7919 % 100003 for i in range(40000)]
TEXT = "lorem ipsum dolor sit amet " * 9000
JSON_TEXT = json.dumps([{"key": i, "value": [i, str(i)]} for i in range(12000)])
DATA = b"x" * (1 << 24)


def cheap():
    return sum(range(10))


def steps_of(function):
    def case(steps):
        for _ in range(steps):
            gpu.work()
            cheap()
            end = time.perf_counter() + 0.02
            while time.perf_counter() < end:  # as often as this machine can
                function()
    return case


@steps_of
def list_comprehension():
    return [i * i % 7 for i in range(200000)]  # SLOW list_comprehension


def sums(count):
    for i in range(count):
        yield sum(range(300 + i % 9))  # SLOW generator


@steps_of
def generator():
    for _ in sums(5000):
        pass


@steps_of
def nested_function():
    def inner():
        def innermost():
            time.sleep(0.02)  # SLOW nested_function
        innermost()
    inner()


class Loader:
    def __init__(self):
        self.seen = 0

    def load(self):
        self.seen += 1
        time.sleep(0.02)  # SLOW method

    @property
    def batch(self):
        return sorted(NUMBERS * 2)  # SLOW property

    @classmethod
    def build(cls):
        return hashlib.sha256(DATA).digest()  # SLOW class_method

    def __call__(self):
        return sum(i for i in range(300000))  # SLOW call_operator

    def __enter__(self):
        return self

    def __exit__(self, *_):
        time.sleep(0.02)  # SLOW context_manager


loader = Loader()


@steps_of
def method():
    loader.load()


@steps_of
def property():
    return loader.batch


@steps_of
def class_method():
    Loader.build()


@steps_of
def call_operator():
    loader()


@steps_of
def context_manager():
    with loader:
        cheap()


@steps_of
def regular_expression():
    return re.sub(r"(\w+) (\w+)", r"\2 \1", TEXT)  # SLOW regular_expression


@steps_of
def json_text():
    return json.loads(JSON_TEXT)  # SLOW json_text


@steps_of
def json_python():
    return list(json.JSONEncoder().iterencode(NUMBERS[:20000]))  # SLOW json_python


scratch = tempfile.TemporaryFile(buffering=0)


@steps_of
def file_write():
    scratch.seek(0)
    scratch.write(DATA)  # SLOW file_write


slow_lambda = lambda count: [i % 3 for i in range(count)]  # SLOW lambda_expression  # noqa: E731


@steps_of
def lambda_expression():
    slow_lambda(250000)


def timed(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        begun = time.perf_counter()
        while time.perf_counter() - begun < 0.02: pass  # SLOW decorator
        return function(*arguments)
    return wrapper


@steps_of
@timed
def decorator():
    cheap()


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)  # SLOW recursion


@steps_of
def recursion():
    fibonacci(23)


def thread(steps):
    def train():
        for _ in range(steps):
            gpu.work()
            time.sleep(0.02)  # SLOW thread
    worker = threading.Thread(target=train)
    worker.start()
    worker.join()


SOURCE = """
def generated():
    import time
    time.sleep(0.02)
"""
names = {}
exec(compile(SOURCE, "<generated>", "exec"), names)  # its line 4 is the slow one


@steps_of
def executed():
    names["generated"]()


def module_level(steps):
    """The loop is the module's own: see the end of this file."""


@steps_of
def class_body():
    class Table:
        rows = {str(i): i for i in range(80000)}  # SLOW class_body


async def fetch():
    await asyncio.sleep(0)
    time.sleep(0.02)  # SLOW coroutine


def coroutine(steps):
    async def train():
        for _ in range(steps):
            gpu.work()
            await fetch()
    asyncio.run(train())


@steps_of
def exception():
    try:
        int("x")
    except ValueError:
        time.sleep(0.02)  # SLOW exception


@steps_of
def map_over():
    return list(map(str, NUMBERS * 4))  # SLOW map_over


@steps_of
def while_loop():
    count = 0
    while count < 500000:  # SLOW while_loop
        count += 1  # SLOW while_loop


name, count = sys.argv[1], int(sys.argv[2])
globals()[name](count)
if name == "module_level":
    for _ in range(count):
        gpu.work()
        time.sleep(0.02)  # SLOW module_level
