// What may stand where a deploy file is asked for.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createOperator } from '../../support/operator.ts';

const latin1 = Buffer.from('services: [] # \u00e9', 'latin1');

it.each([
  ['a directory', (path: string) => mkdirSync(path), 'EISDIR'],
  [
    'bytes that are no UTF-8, which would change a value',
    (path) => writeFileSync(path, latin1),
    'UTF-8 text',
  ],
  ['a device without an end', (path) => symlinkSync('/dev/zero', path), 'larger than 4 MiB'],
  [
    'more than a person writes',
    (path) => writeFileSync(path, Buffer.alloc(5_000_000, ' ')),
    'larger than 4 MiB',
  ],
] satisfies [string, (path: string) => void, string][])('deploy refuses %s', async (_, make, cause) => {
  const operator = createOperator(['web-1']);
  const path = join(operator.root, 'services.yaml');
  make(path);
  const end = await operator.reeve('deploy', path, '--json');
  expect([end.status, JSON.parse(end.stdout).outcome]).toEqual([65, 'failed']);
  expect(end.stderr).toContain(cause);
});
