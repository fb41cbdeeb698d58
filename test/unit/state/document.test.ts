import { mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { InputError } from '../../../src/lib/errors.ts';
import { type Log, silentLog } from '../../../src/lib/report/log.ts';
import {
  defineDocument,
  readDocument,
  removeDocument,
  writeDocument,
  writeDocumentIfChanged,
} from '../../../src/lib/state/document.ts';
import { makeTempDir } from '../../support/temp.ts';

type Ports = { ports: Record<string, number> };

const definition = defineDocument<Ports>({
  version: 2,
  parse: (raw) => {
    const { ports } = raw;
    if (typeof ports !== 'object' || ports === null) throw new Error('its ports are wrong');
    return { ports: ports as Ports['ports'] };
  },
  migrate: (raw) => ({ ports: raw['map'] }),
});

const now = new Date('2026-06-04T03:00:00.000Z');
const stamp = '2026-06-04T03-00-00-000Z';
const first: Ports = { ports: { 'blog/web#0': 27396 } };
const second: Ports = { ports: { 'blog/web#0': 27396, 'blog/web#1': 27397 } };

let path = '';
let warnings: string[] = [];
const log: Log = { ...silentLog, warning: (message) => void warnings.push(message) };

beforeEach(() => {
  path = join(makeTempDir(), 'ports.json');
  warnings = [];
});

describe('readDocument', () => {
  it('takes a missing file for the first run', async () => {
    expect(await read()).toEqual({ kind: 'missing' });
    expect(warnings).toEqual([]);
  });

  it('reads what was written, version first', async () => {
    await writeDocument(path, definition, first);
    expect(await read()).toEqual({ kind: 'ok', value: first });
    expect(await readFile(path, 'utf8')).toBe(
      '{\n  "version": 2,\n  "ports": {\n    "blog/web#0": 27396\n  }\n}\n',
    );
  });

  const damages: [string, string | Buffer, string][] = [
    ['an empty file', '', 'it is empty'],
    ['NULs of the right length', Buffer.alloc(100), 'it contains NUL bytes'],
    ['a cut file', '{"version": 2, "ports": {"blog/web#0": 27', 'it is not whole JSON'],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22]), 'it is not whole JSON'],
    ['a JSON list', '[]', 'it is not a JSON object'],
    ['JSON null', 'null', 'it is not a JSON object'],
    ['no version', '{"ports":{}}', 'it has no version'],
    ['a wrong shape', '{"version":2,"ports":7}', 'its ports are wrong'],
  ];

  it.each(damages)('sets %s aside and takes the previous copy (R32, R55)', async (_, damage, reason) => {
    await writeDocument(path, definition, first);
    await writeDocument(path, definition, second);
    await writeFile(path, damage);
    expect(await read()).toEqual({
      kind: 'recovered',
      value: first,
      reason,
      setAside: `${path}.corrupt-${stamp}`,
    });
    expect(await readdir(join(path, '..'))).toEqual([`ports.json.corrupt-${stamp}`, 'ports.json.previous']);
    expect(await readFile(`${path}.corrupt-${stamp}`)).toEqual(Buffer.from(damage));
    expect(warnings).toEqual([`state file taken from its previous copy: ${reason}`]);
  });

  it.each(damages)(
    'never takes %s for empty where no previous copy is there (R32)',
    async (_, damage, reason) => {
      await writeFile(path, damage);
      expect(await read()).toEqual({ kind: 'lost', reason, setAside: `${path}.corrupt-${stamp}` });
      expect(warnings).toEqual([`state file lost: ${reason}; no previous copy can be used`]);
    },
  );

  it('takes a file of more than 16 MB for damaged', async () => {
    await writeFile(path, '');
    await truncate(path, 16 * 1024 * 1024 + 1);
    expect(await read()).toMatchObject({ kind: 'lost', reason: 'it is larger than 16777216 bytes' });
  });

  it('takes the previous copy where a run was killed after setting the damaged file aside', async () => {
    await writeDocument(path, definition, first);
    await writeDocument(path, definition, second);
    await writeFile(path, '');
    await read();
    const again = await read();
    expect(again).toEqual({
      kind: 'recovered',
      value: first,
      reason: 'it is missing, but its previous copy is there',
      setAside: undefined,
    });
  });

  it('changes nothing for a reader that does not own the file', async () => {
    await writeDocument(path, definition, first);
    await writeDocument(path, definition, second);
    await writeFile(path, 'cut');
    const result = await readDocument(path, definition, { now, log, repair: false });
    expect(result).toEqual({
      kind: 'recovered',
      value: first,
      reason: 'it is not whole JSON',
      setAside: undefined,
    });
    expect(await readFile(path, 'utf8')).toBe('cut');
  });

  it('goes on after a recovery with the good copy kept', async () => {
    await writeDocument(path, definition, first);
    await writeDocument(path, definition, second);
    await writeFile(path, 'cut');
    await read();
    await writeDocument(path, definition, second);
    expect(await read()).toEqual({ kind: 'ok', value: second });
    expect(JSON.parse(await readFile(`${path}.previous`, 'utf8'))).toEqual({ version: 2, ...first });
  });

  it('brings an older version up to date', async () => {
    await writeFile(path, '{"version":1,"map":{"a":1}}');
    expect(await read()).toEqual({ kind: 'ok', value: { ports: { a: 1 } } });
  });

  it('refuses a newer version and leaves the file where it is', async () => {
    await writeFile(path, '{"version":3,"ports":{}}');
    await expect(read()).rejects.toEqual(
      new InputError(`cannot read "${path}": it is version 3, this reeve knows versions up to 2`, {
        code: 'newer-version',
      }),
    );
    expect(await readdir(join(path, '..'))).toEqual(['ports.json']);
  });

  it('throws where the name is a directory: unreadable is not missing', async () => {
    await mkdir(path);
    await expect(read()).rejects.toMatchObject({ name: 'ConfigError', code: 'EISDIR' });
  });

  it('throws where a part of the path is a file', async () => {
    await writeFile(path, '{}');
    await expect(readDocument(join(path, 'x.json'), definition, { now, log })).rejects.toMatchObject({
      name: 'ConfigError',
      code: 'ENOTDIR',
    });
  });

  it('does not follow a symbolic link', async () => {
    await symlink('/etc/hostname', path);
    await expect(read()).rejects.toMatchObject({ name: 'ConfigError', code: 'ELOOP' });
  });
});

describe('writeDocumentIfChanged', () => {
  it('writes nothing for the same value, so that an idle tick leaves no trace', async () => {
    expect(await writeDocumentIfChanged(path, definition, first)).toBe(true);
    const before = await stat(path, { bigint: true });
    expect(await writeDocumentIfChanged(path, definition, { ...first })).toBe(false);
    const after = await stat(path, { bigint: true });
    expect([after.ino, after.ctimeNs]).toEqual([before.ino, before.ctimeNs]);
    expect(await readdir(join(path, '..'))).toEqual(['ports.json']);
  });

  it('writes what differs', async () => {
    await writeDocumentIfChanged(path, definition, first);
    expect(await writeDocumentIfChanged(path, definition, second)).toBe(true);
    expect(await read()).toEqual({ kind: 'ok', value: second });
  });
});

describe('removeDocument', () => {
  it('removes the document with its previous copy, and what is not there too', async () => {
    await writeDocument(path, definition, first);
    await writeDocument(path, definition, second);
    await removeDocument(path);
    await removeDocument(path);
    expect(await read()).toEqual({ kind: 'missing' });
  });
});

async function read() {
  return await readDocument(path, definition, { now, log });
}
