// What ployd-node has as units of one program, reeve has as folders that know of each other only what they have to.
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../../../src');
const textOf = (folder: string): string =>
  globSync('**/*.ts', { cwd: join(root, folder) })
    .map((file) => readFileSync(join(root, folder, file), 'utf8'))
    .join('\n');

describe('the roles of a node that takes jobs (P77)', () => {
  it.each([
    ['entry point', 'commands/claim.ts', 'commands/api-jobs.ts', 'commands/heartbeat.ts'],
    ['configuration, loaded and validated', 'lib/config/load.ts', 'lib/config/section-jobs.ts'],
    ['orchestration', 'lib/claim/run.ts', 'lib/job/run.ts'],
    ['HTTPS server', 'lib/server/listen.ts', 'lib/server/serve.ts'],
    ['request handlers', 'lib/api-jobs/start.ts', 'lib/api-jobs/stop.ts'],
    ['heartbeat and reporting of resources', 'lib/heartbeat/report-jobs.ts', 'lib/host/sample.ts'],
  ])('have a unit of their own: %s', (_, ...files) => {
    expect(globSync(files, { cwd: root }).sort()).toEqual([...files].sort());
  });

  it.each([
    [
      'lib/server',
      'jobs, claims or their server',
      /from '\.\.\/(?:api-jobs|claim|job|jobs|ploy|control-plane)\//,
    ],
    ['lib/api-jobs', 'sockets or TLS', /from 'node:(?:http|https|net|tls|http2)'/],
    ['lib/claim', "the node's own API or heartbeats", /from '\.\.\/(?:server|api-jobs|heartbeat)\//],
    [
      'lib/job',
      "the node's own API, heartbeats or claims",
      /from '(?:\.\.\/)+(?:server|api-jobs|heartbeat|claim)\//,
    ],
    ['lib/heartbeat', 'jobs, claims or the API', /from '\.\.\/(?:server|api-jobs|claim|job|jobs)\//],
    ['lib/host', 'anybody who reports it', /from '\.\.\/(?:heartbeat|control-plane|reconcile|status)\//],
  ])('%s knows nothing of %s', (folder, _, forbidden) => {
    expect(textOf(folder).match(forbidden)).toBeNull();
  });
});
