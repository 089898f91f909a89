# SPDX-License-Identifier: Apache-2.0
"""Asks cuGetProcAddress for each name, version and flags given as NAME:VERSION:FLAGS; prints the library and the
symbol that each answer lies in, one a line."""
import ctypes
import sys


class DlInfo(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]


libc = ctypes.CDLL(None)
ask = ctypes.CDLL("libcuda.so.1").cuGetProcAddress_v2
ask.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p]
for line in sys.stdin.read().split():
    name, version, flags = line.split(":")
    found, status, info = ctypes.c_void_p(), ctypes.c_int(), DlInfo()
    error = ask(name.encode(), ctypes.byref(found), int(version), int(flags), ctypes.byref(status))
    if error or not found.value:
        print(line, "none")
        continue
    libc.dladdr(found, ctypes.byref(info))
    print(line, info.file.decode().rsplit("/", 1)[-1], (info.symbol or b"?").decode())
