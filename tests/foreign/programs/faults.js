// SPDX-License-Identifier: Apache-2.0
// Workers, children, a handler of a signal, and faults that V8 handles by SIGSEGV.
const { Worker, isMainThread, parentPort } = require('worker_threads');
const { execSync, spawnSync } = require('child_process');

function worker() {
  let sum = 0;
  for (let i = 0; i < 3e6; i++) sum += i % 7;
  parentPort.postMessage(sum);
}

// A module whose one function reads 16,384 pages beyond its memory of one page.
const BYTES = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 102, 0, 0,
  10, 13, 1, 11, 0, 65, 128, 128, 128, 1, 40, 2, 0, 26, 11];

function rest() {
  console.log(execSync('echo hi').toString().trim());
  console.log(spawnSync('sh', ['-c', 'kill -9 $$']).signal);
  for (const fault of [() => new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(BYTES))).exports.f(),
    function descend() { descend(); }]) {
    try { fault(); } catch (error) { console.log(error.constructor.name); }
  }
  process.on('SIGUSR2', () => { console.log('signal'); process.exit(5); });
  process.kill(process.pid, 'SIGUSR2');
  setTimeout(() => {}, 5000);
}

if (isMainThread) {
  let sum = 0, left = 8;
  for (let i = 0; i < 8; i++) {
    const started = new Worker(__filename);
    started.on('message', (value) => { sum += value; });
    started.on('exit', () => { if (--left === 0) { console.log(sum); rest(); } });
  }
} else {
  worker();
}
