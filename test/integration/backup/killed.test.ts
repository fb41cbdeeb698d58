// A run that is killed, wherever it is: nothing of it is taken for a backup, and the next run makes the same set whole.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import { type Bucket, startBucket } from '../../support/bucket.ts';
import {
  findDumpFiles,
  findRemains,
  holdTable,
  lastFire,
  lastStamp,
  makeDue,
  nothingLeft,
  startDatabase,
  type TestDatabase,
  waitingSql,
} from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import type { Seen } from '../../support/faulty-proxy.ts';
import { makeNode, type RunningReeve, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';
import { refusal } from '../../support/s3-answers.ts';

const whenDone = collectAfterAll();

describe('a backup into a bucket', () => {
  let node: TestNode;
  let db: TestDatabase;
  let bucket: Bucket;
  const prefix = 'default/killed/db';
  const dump = (database: string): string => `${prefix}/${database}/${lastStamp}.sql.gz`;
  const manifest = `${prefix}/_sets/${lastStamp}/manifest.json`;

  beforeAll(async () => {
    buildPostgresImage(engineSocket());
    bucket = await startBucket({ whenFinished: whenDone });
    node = makeNode({
      ...{ project: 'killed', onTestFinished: whenDone, env: bucket.env },
      cluster: { region: bucket.settings.region, endpoint: bucket.settings.endpoint },
    });
    const backup = { schedule: '0 0 1 1 *', retentionDays: 7, bucket: 'state' };
    db = await startDatabase(node, { backup });
    for (const name of ['small', 'large']) await db.psql(`CREATE DATABASE ${name}`);
    const rows = 'SELECT gen_random_uuid() AS a, gen_random_uuid() AS b FROM generate_series(1, 500000)';
    await db.psql(`CREATE TABLE t AS ${rows}`, 'large');
    await db.psql('CREATE TABLE t AS SELECT generate_series(1, 10) AS i', 'small');
  }, imageMs);
  beforeEach(async () => {
    bucket.proxy.fault = () => undefined;
    for (const key of await bucket.list()) await bucket.remove(key);
    makeDue(node);
  });

  /** Sizes by key of what is there under a final name; unfinished uploads are nowhere to be seen. */
  const keys = (): Promise<string[]> => bucket.list();

  async function expectConverged(): Promise<void> {
    bucket.proxy.fault = () => undefined;
    const end = await node.reeve('backup', '--json');
    expect([end.status, end.json().outcome], end.stdout + end.stderr).toEqual([0, 'done']);
    expect(await keys()).toEqual([
      `${prefix}/_sets/${lastStamp}/globals.sql.gz`,
      manifest,
      dump('large'),
      dump('small'),
    ]);
    const about = (await bucket.read(manifest)) as {
      databases: { database: string; tables: { rows: number }[] }[];
    };
    expect(about.databases.map(({ database, tables }) => [database, tables[0]?.rows])).toEqual([
      ['small', 10],
      ['large', 500_000],
    ]);
    expect(node.state('backups.json')).toMatchObject({ anchors: { 'backup:killed/db': lastFire.getTime() } });
    expect(await findRemains(node, db)).toEqual(nothingLeft);
  }

  it('goes up by the role of the node, in parts, and is asked for afterwards (L84, L85)', async () => {
    bucket.takeAsked();
    await expectConverged();
    const asked = bucket.takeAsked();
    expect(asked.filter((line) => line === `HEAD ${dump('large')}`)).not.toEqual([]);
    expect(asked.filter((line) => line === `PUT ${dump('large')}`).length).toBeGreaterThan(1);
  });

  /** Kills the run when the request comes, which then is answered or not. */
  function killAt(matches: (seen: Seen) => boolean, answers: boolean): { run: () => Promise<void> } {
    let running: RunningReeve | undefined;
    let isKilled = false;
    bucket.proxy.fault = (seen) => {
      if (isKilled || !matches(seen)) return undefined;
      isKilled = true;
      running?.child.kill('SIGKILL');
      return answers ? undefined : { kind: 'reset' };
    };
    return {
      run: async () => {
        running = node.start(['backup']);
        const end = await running.end;
        expect([end.signal, isKilled], end.stdout + end.stderr).toEqual(['SIGKILL', true]);
      },
    };
  }

  const isPart = ({ method, path }: Seen, number: number): boolean =>
    method === 'PUT' && path.includes(dump('large')) && path.includes(`partNumber=${number}&`);

  it.each([
    ['the first part of a dump goes up', (seen: Seen) => isPart(seen, 1), false],
    ['its second part is there', (seen: Seen) => isPart(seen, 2), true],
    [
      'its parts are put together',
      (seen: Seen) => seen.method === 'POST' && seen.path.includes('uploadId='),
      true,
    ],
    [
      'its manifest goes up',
      (seen: Seen) => seen.method === 'PUT' && seen.path.includes('manifest.json'),
      false,
    ],
    [
      'its manifest is there, and no record',
      (seen: Seen) => seen.method === 'PUT' && seen.path.includes('manifest.json'),
      true,
    ],
  ] as const)(
    'killed when %s is the same set after the next run (L90, L91, L92, O19)',
    async (_, matches, answers) => {
      await killAt(matches, answers).run();
      expect(node.state('backups.json')).toMatchObject({
        anchors: { 'backup:killed/db': lastFire.getTime() - 60_000 },
      });
      await expectConverged();
    },
  );

  it('killed while it dumps leaves nothing that runs on (L81, O7, R59)', async () => {
    const release = await holdTable(db, { database: 'large', table: 't' });
    const running = node.start(['backup']);
    await expect.poll(() => db.psql(waitingSql), { timeout: 30_000 }).not.toBe('0');
    running.child.kill('SIGKILL');
    await running.end;
    await release();
    expect(await keys()).not.toContain(manifest);
    await expectConverged();
  });

  it('killed in the midst of a dump leaves a file that the next run removes (L88)', async () => {
    const running = node.start(['backup']);
    await expect.poll(() => findDumpFiles(node), { timeout: 60_000, interval: 5 }).not.toBe('');
    running.child.kill('SIGKILL');
    await running.end;
    await expectConverged();
  });

  it('that is told that its parts were put together, in an answer that is an error, has failed (O18)', async () => {
    const body =
      '<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>';
    bucket.proxy.fault = ({ method, path }) =>
      method === 'POST' && path.includes('uploadId=') ? { kind: 'answer', status: 200, body } : undefined;
    const end = await node.reeve('backup');
    expect([end.status, await keys()]).toEqual([1, expect.not.arrayContaining([dump('large')])]);
    expect(end.stdout).toContain('killed/db "large": failed: ');
    expect(await findRemains(node, db)).toEqual(nothingLeft);
    makeDue(node);
    await expectConverged();
  });

  it('that is refused has failed at once, and is made once it is not', async () => {
    bucket.proxy.fault = ({ method, path }) =>
      method !== 'GET' && path.includes('killed') ? refusal(403, 'AccessDenied') : undefined;
    const end = await node.reeve('backup');
    expect([end.status, await keys()]).toEqual([1, []]);
    expect(end.stdout).toContain('AccessDenied');
    makeDue(node);
    await expectConverged();
  });

  it('whose network breaks once is tried again within the run', async () => {
    let count = 0;
    bucket.proxy.fault = (seen) => {
      if (seen.method !== 'HEAD' || !seen.path.includes(dump('large'))) return undefined;
      count += 1;
      return count <= 5 ? { kind: 'answer', status: 503, body: '' } : undefined;
    };
    await makeWithFault();
    expect(count).toBeGreaterThan(5);
  });

  async function makeWithFault(): Promise<void> {
    const end = await node.reeve('backup');
    expect([end.status, (await keys()).length], end.stdout + end.stderr).toEqual([0, 4]);
  }
});
