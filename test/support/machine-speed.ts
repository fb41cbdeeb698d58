// How slow this machine is just now, for promises in milliseconds: they were made on one that starts a small program, which asks a
// server of this process, in 50 ms. Times are only ever compared within one run.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createPki } from './ploy/pki.ts';
import { makeTempDir } from './temp.ts';
import { measureInTurn } from './timing.ts';

const promisedMs = 50;

/** 1 on such a machine and on every faster one, 2 on one that takes twice as long. */
export async function readSlowness(): Promise<number> {
  const { cert, key } = createPki(makeTempDir()).server;
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_request, response) =>
    response.end('here'),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const program = `require('node:https').get({ port: ${port}, rejectUnauthorized: false }, (response) => response.resume());`;
  try {
    const { small } = await measureInTurn(9, { small: { argv: [process.execPath, '-e', program], env: {} } });
    const slowness = Math.max(1, small / promisedMs);
    console.log(
      `figure: a small program takes ${small.toFixed(0)} ms here: promises count ${slowness.toFixed(2)} times`,
    );
    return slowness;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
