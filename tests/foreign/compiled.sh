#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiled languages: GHC, Rust, OCaml, SBCL, each with threads, forks and faults of its own runtime.
# needs: ghc rustc ocamlopt sbcl
ghc -threaded -rtsopts -O0 "$PROGRAMS/Faults.hs" -outputdir . -o haskell >/dev/null 2>&1
for flags in -N1 '-N4 -C0.001 -V0.001'; do
  # shellcheck disable=SC2086  # several flags
  ./haskell +RTS $flags
  echo "haskell $?"
done
rustc -O "$PROGRAMS/faults.rs" -o rust 2>/dev/null
./rust 2>/dev/null
echo "rust $?"
./rust overflow 2>&1 >/dev/null | grep -c 'has overflowed its stack'
cp "$PROGRAMS/faults.ml" .
ocamlopt -I +threads unix.cmxa threads.cmxa faults.ml -o ocaml 2>/dev/null
./ocaml
echo "ocaml $?"
sbcl --noinform --non-interactive --load "$PROGRAMS/faults.lisp" 2>/dev/null
./lisp  # the image that it wrote
echo "lisp $?"
