// SPDX-License-Identifier: Apache-2.0
// What is on top of both: a program, or a library that is opened.
int use_registry(void);

int work(void) { return use_registry(); }

int main(void) { return work(); }
