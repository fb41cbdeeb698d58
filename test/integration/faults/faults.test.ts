// Every file call of the state, lock and store code fails once, or is the last thing the process does. Afterwards the
// file is old or new, never a third thing; no lock is held; the next run succeeds and leaves no staging file.
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { acquireLock } from '../../../src/lib/lock/flock.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { readDocument, writeDocument } from '../../../src/lib/state/document.ts';
import { appendHistory, readHistory } from '../../../src/lib/state/history.ts';
import { openFileStore } from '../../../src/lib/store/file.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { anEvent, newBody, oldBody, textDocument } from '../../support/fault-cases.ts';
import { type Fault, type FaultRun, fileCalls, injectFaults } from '../../support/faults.ts';

const key = 'nodes/web-1/desired.json';
const kill = 'signal=KILL';
const full = 'error=ENOSPC';
const broken = 'error=EIO';

/** `hits`: how many calls of the kind the act makes at least; fewer means that the fault tests nothing. */
type Row = { call: keyof typeof fileCalls; effect: string; hits: number };

const publishing: Row[] = [
  { call: 'open', effect: kill, hits: 4 },
  { call: 'open', effect: full, hits: 4 },
  { call: 'sync', effect: kill, hits: 2 },
  { call: 'sync', effect: broken, hits: 2 },
  { call: 'write', effect: kill, hits: 1 },
  { call: 'write', effect: full, hits: 1 },
  { call: 'rename', effect: kill, hits: 1 },
  { call: 'rename', effect: full, hits: 1 },
];

const staging: Row[] = [
  // The kernel says that all, or some, was written, and nothing was.
  { call: 'write', effect: 'retval=50000', hits: 1 },
  { call: 'write', effect: 'retval=100', hits: 1 },
  { call: 'mode', effect: kill, hits: 1 },
  { call: 'mode', effect: broken, hits: 1 },
  { call: 'unlink', effect: kill, hits: 1 },
  { call: 'unlink', effect: broken, hits: 1 },
];

const keeping: Row[] = [
  { call: 'link', effect: kill, hits: 1 },
  { call: 'link', effect: full, hits: 1 },
  // No hard links on this file system: the previous copy is a copy.
  { call: 'link', effect: 'error=EPERM', hits: 1 },
];

const locking: Row[] = [
  { call: 'open', effect: kill, hits: 1 },
  { call: 'open', effect: broken, hits: 1 },
  { call: 'flock', effect: kill, hits: 1 },
  { call: 'flock', effect: 'error=ENOLCK', hits: 1 },
  { call: 'truncate', effect: kill, hits: 2 },
  { call: 'truncate', effect: broken, hits: 2 },
  { call: 'write', effect: kill, hits: 1 },
  { call: 'write', effect: full, hits: 1 },
];

describe.concurrent('writing a state document over an old one', () => {
  it.for([...publishing, ...staging, ...keeping])(
    'survives $effect at any $call (O55, R55, O63)',
    async (row) => {
      const { hits } = await tryFaults('document', row, prepareDocument, async (directory, run) => {
        const path = join(directory, 'state.json');
        const options = { now: new Date(), log: silentLog };
        const text = requireOldOrNew(run, await readText(await readDocument(path, textDocument, options)));
        await requireNoStaging(directory, run);
        await writeDocument(path, textDocument, { text: 'next' });
        expect(await readDocument(path, textDocument, options)).toEqual({
          kind: 'ok',
          value: { text: 'next' },
        });
        expect(JSON.parse(await readFile(`${path}.previous`, 'utf8'))).toEqual({ version: 1, text });
        expect(await listNames(directory)).toEqual(['state.json', 'state.json.previous']);
      });
      expect(hits).toBeGreaterThanOrEqual(row.hits);
    },
  );
});

describe.concurrent('appending to the history', () => {
  const rows: Row[] = [
    { call: 'open', effect: kill, hits: 1 },
    { call: 'open', effect: full, hits: 1 },
    { call: 'append', effect: kill, hits: 1 },
    { call: 'sync', effect: kill, hits: 1 },
    { call: 'sync', effect: broken, hits: 1 },
  ];
  it.for(rows)('survives $effect at any $call (R55)', async (row) => {
    const { hits } = await tryFaults('history', row, prepareHistory, async (directory) => {
      const actions = (await readHistory({ stateDir: directory })).map((event) => event.action);
      expect([['first'], ['first', 'second', 'third']]).toContainEqual(actions);
      await appendHistory({ stateDir: directory }, [anEvent('next')]);
      expect((await readHistory({ stateDir: directory })).map((event) => event.action)).toEqual([
        ...actions,
        'next',
      ]);
    });
    expect(hits).toBeGreaterThanOrEqual(row.hits);
  });
});

describe.concurrent('taking and giving back a lock', () => {
  it.for(locking)(
    'is never told as busy and leaves no lock after $effect at any $call (O61, O56)',
    async (row) => {
      const { hits } = await tryFaults(
        'lock',
        row,
        async () => {},
        async (directory, run) => {
          expect(run.end.stdout).not.toContain('failed busy');
          const lock = await acquireLock(directory, 'reconcile', {
            command: 'next',
            runId: 'next',
            clock: systemClock,
          });
          lock.release();
        },
      );
      expect(hits).toBeGreaterThanOrEqual(row.hits);
    },
  );
});

describe.concurrent('a conditional put into a directory store', () => {
  const rows = [...publishing, ...staging, ...locking.filter((row) => row.call === 'flock')];
  it.for(rows)('survives $effect at any $call (O55, R55)', async (row) => {
    const { hits } = await tryFaults('put', row, prepareStore, requireWholeObject);
    expect(hits).toBeGreaterThanOrEqual(row.hits);
  });
});

describe.concurrent('a streamed put into a directory store', () => {
  it.for(publishing)('survives $effect at any $call (O55, R55)', async (row) => {
    const { hits } = await tryFaults('stream', row, prepareStore, requireWholeObject);
    expect(hits).toBeGreaterThanOrEqual(row.hits);
  });
});

async function tryFaults(
  act: string,
  row: Row,
  prepare: (directory: string) => Promise<void>,
  check: (directory: string, run: FaultRun) => Promise<void>,
): Promise<{ hits: number }> {
  const fault: Fault = { calls: fileCalls[row.call], effect: row.effect };
  const template = await mkdtemp(join(tmpdir(), 'reeve-fault-'));
  try {
    await prepare(template);
    // The program warms up in a place of its own that the checks do not look at.
    await mkdir(join(template, 'warm'));
    const hits = await injectFaults(act, fault, template, async (directory, run) => {
      if (!run.hit) expect(run.end.stdout).toBe('ready\ndone\n');
      await check(directory, run);
    });
    return { hits };
  } finally {
    await rm(template, { recursive: true });
  }
}

async function prepareDocument(directory: string): Promise<void> {
  await writeDocument(join(directory, 'state.json'), textDocument, { text: oldBody });
}

async function prepareHistory(directory: string): Promise<void> {
  await appendHistory({ stateDir: directory }, [anEvent('first')]);
}

async function prepareStore(directory: string): Promise<void> {
  await openFileStore(directory).put(key, oldBody);
}

async function requireWholeObject(directory: string, run: FaultRun): Promise<void> {
  const store = openFileStore(directory);
  const current = await store.get(key);
  requireOldOrNew(run, current?.text);
  await requireNoStaging(join(directory, 'nodes/web-1'), run);
  await store.put(key, 'next', { ifMatch: current?.etag ?? '' });
  expect((await store.get(key))?.text).toBe('next');
  expect(await listNames(join(directory, 'nodes/web-1'))).toEqual(['desired.json']);
}

function requireOldOrNew(run: FaultRun, text: string | undefined): string {
  expect([oldBody, newBody]).toContain(text);
  if (run.end.stdout.includes('done')) expect(text).toBe(newBody);
  return text as string;
}

/** What fails cleans up after itself; what was killed, or could not unlink, leaves that to the next run. */
async function requireNoStaging(directory: string, run: FaultRun): Promise<void> {
  if (run.end.signal !== null || run.fault.calls === fileCalls.unlink) return;
  expect((await listNames(directory)).filter((name) => name.startsWith('.'))).toEqual([]);
}

async function readText(read: Awaited<ReturnType<typeof readDocument<{ text: string }>>>): Promise<string> {
  if (read.kind !== 'ok') throw new Error(`the document is ${read.kind}`);
  return read.value.text;
}

async function listNames(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name !== 'warm').sort();
}
