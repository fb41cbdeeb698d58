// What `claim` costs where nothing is offered, beside a program that does nothing but send the same request.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { startProcess } from '../../support/programs.ts';

const rounds = 25;

const minimal = (node: ClaimNode): string => `
  import { readFileSync } from 'node:fs';
  import { request } from 'node:https';
  const at = ${JSON.stringify(join(node.root, 'etc'))};
  const call = request(${JSON.stringify(`${node.ploy.url}/v1/nodes/node-1/claim`)}, {
    method: 'POST', minVersion: 'TLSv1.3',
    cert: readFileSync(at + '/node.crt'), key: readFileSync(at + '/node.key'), ca: readFileSync(at + '/ca.crt'),
    headers: {
      authorization: 'Bearer ' + readFileSync(at + '/token', 'utf8'),
      PLOY_NODE_UUID: 'node-1', 'content-length': '0',
    },
  }, (response) => { response.resume(); process.exitCode = response.statusCode === 204 ? 0 : 1; });
  call.end();
`;

it('P46 costs at most twice a minimal program with the same request where nothing is offered', async () => {
  const node = await makeClaimNode();
  const program = join(node.root, 'minimal.mjs');
  writeFileSync(program, minimal(node));
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < rounds + 2; round += 1) {
    const own = await timeOf(async () => await node.reeve('claim', '--window', '0'));
    const other = await timeOf(async () => await startProcess(process.execPath, [program]).ended);
    // The first ones fill caches.
    if (round < 2) continue;
    ours.push(own);
    theirs.push(other);
  }
  const ratio = median(ours) / median(theirs);
  process.stdout.write(
    `figure: claim with nothing offered ${median(ours).toFixed(0)} ms, a minimal program ${median(theirs).toFixed(0)} ms, ratio ${ratio.toFixed(2)}\n`,
  );
  expect(ratio).toBeLessThan(2);
});

async function timeOf(work: () => Promise<{ status: number | null }>): Promise<number> {
  const startedAtMs = performance.now();
  expect((await work()).status).toBe(0);
  return performance.now() - startedAtMs;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
