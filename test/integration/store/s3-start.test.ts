// What a bucket costs each run of a timer: one process, one list, no connection kept from the last time.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { startBucket } from '../../support/bucket.ts';
import { makeTempDir } from '../../support/temp.ts';
import { measureInTurn } from '../../support/timing.ts';

// Other work on the machine spoils a measurement now and then.
it('takes at most five empty programs for a command that lists a bucket', { retry: 3 }, async () => {
  const root = makeTempDir();
  const bucket = await startBucket();
  const describeCase = (name: string, cluster: object) => {
    const config = join(root, `${name}.yaml`);
    writeFileSync(config, JSON.stringify({ cluster }));
    const env = {
      ...{ ...bucket.env, REEVE_CONFIG: config, REEVE_CACHE: join(root, 'cache') },
      ...{ REEVE_STATE: join(root, 'state'), REEVE_RUN: join(root, 'run') },
    };
    const argv: [string, ...string[]] = [inject('reeveBin'), 'status', '--cluster'];
    return { argv, env };
  };
  mkdirSync(join(root, 'store'));
  writeFileSync(join(root, 'empty.js'), '');
  const { AWS_ENDPOINT_URL: _, ...env } = bucket.env;
  const times = await measureInTurn(15, {
    empty: { argv: [process.execPath, join(root, 'empty.js')], env },
    directory: { ...describeCase('file', { store: `file://${join(root, 'store')}` }) },
    bucket: describeCase('s3', bucket.settings),
  });
  const text = Object.entries(times).map(([name, ms]) => `${name} ${ms.toFixed(0)} ms`);
  console.log(`figure: a command that lists its store, beside an empty program: ${text.join(', ')}`);
  expect(times.bucket / times.empty).toBeLessThan(5);
});
