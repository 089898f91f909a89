#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The JVM with six garbage collectors, its JIT and without it; then it ends by signals.
# needs: java javac
javac "$PROGRAMS/Faults.java" -d . || exit 9
for flags in -Xint -Xcheck:jni -XX:+UseSerialGC -XX:+UseParallelGC -XX:+UseG1GC -XX:+UseZGC -XX:+UseShenandoahGC; do
  echo "$flags"
  java "$flags" -cp . Faults
  echo "exit $?"
done
for signal in TERM INT HUP; do
  java -cp . Faults wait >"$signal" &
  until grep -q waiting "$signal"; do sleep 0.1; done
  kill -QUIT $!  # prints its threads, and goes on
  kill -"$signal" $!
  wait $!
  echo "$signal $?" "$(grep -c -e waiting -e hook "$signal")"
done
