// SPDX-License-Identifier: Apache-2.0
// Three processes that serve one port.
const cluster = require('cluster');
const http = require('http');

if (cluster.isPrimary) {
  let ready = 0;
  for (let i = 0; i < 3; i++) cluster.fork();
  cluster.on('listening', (worker, address) => {
    if (++ready < 3) return;
    http.get({ port: address.port }, (reply) => {
      reply.on('data', (data) => console.log(`${data}`));
      reply.on('end', () => { for (const id in cluster.workers) cluster.workers[id].kill(); });
    });
  });
  cluster.on('exit', (worker, code, signal) => console.log('exit', code, signal));
} else {
  http.createServer((request, reply) => reply.end('ok')).listen(0);
}
