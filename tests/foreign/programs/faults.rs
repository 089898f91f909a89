// SPDX-License-Identifier: Apache-2.0
// Threads, a panic, a deep stack, a child; with an argument a stack that overflows, which a handler names.
use std::process::Command;
use std::{env, panic, process, thread};

fn depth(n: u64) -> u64 {
    if n == 0 { 0 } else { 1 + depth(n - 1) }
}

#[allow(unconditional_recursion)]
#[inline(never)]
fn overflow(n: u64) -> u64 {
    let room = [n; 100];
    room[(n % 100) as usize] + overflow(n + 1) * 2
}

fn main() {
    let threads: Vec<_> = (0..32u64)
        .map(|i| thread::spawn(move || (0..100_000u64).fold(i, |a, b| a.wrapping_mul(31) + b)))
        .collect();
    println!("{}", threads.into_iter().map(|t| t.join().unwrap()).fold(0, |a, b| a ^ b));
    println!("{}", panic::catch_unwind(|| panic!("caught")).is_err());
    println!("{}", depth(10_000));
    let child = Command::new("sh").arg("-c").arg("echo c; exit 3").output().unwrap();
    println!("{:?} {:?}", child.status.code(), child.stdout);
    if env::args().count() > 1 {
        println!("{}", overflow(0));
    }
    process::exit(4);
}
