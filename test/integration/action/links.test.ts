// Links and swaps in a tree that belongs to somebody else: whatever is put in the way, root works in the tree or not at all.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeDispatched } from '../../../src/lib/action/files.ts';
import { onTestFinished } from '../../support/after-test.ts';
import {
  actionId,
  anAction,
  type ControlHost,
  dispatchAndReport,
  makeControlHost,
} from '../../support/control-host.ts';
import { startProcess } from '../../support/programs.ts';

/** In the place of a directory of the tree: a link to one outside, which holds what the directory held. */
function leadOut(host: ControlHost, name: string): string {
  const outside = join(host.dir, 'outside');
  const inside = join(host.root, name);
  if (existsSync(inside)) renameSync(inside, outside);
  else mkdirSync(outside);
  mkdirSync(join(inside, '..'), { recursive: true });
  symlinkSync(outside, inside);
  return outside;
}

describe('a directory of the tree that is a link', () => {
  it.each(['deploy/web-1', 'deploy'])('D46 %s leads no file of a node out of the tree', async (name) => {
    const host = makeControlHost();
    host.propose();
    await host.reeve('action', 'approve', actionId, '--yes');
    const outside = leadOut(host, name);
    const end = await host.reeve('action', 'dispatch');
    expect([end.status, host.names('outside', true)]).toStrictEqual([1, []]);
    expect(end.stdout + end.stderr).toContain('nothing is followed there');
    expect(host.statesOf(actionId)).toStrictEqual(['approved']);

    rmSync(join(host.root, name));
    expect((await host.reeve('action', 'dispatch')).status).toBe(0);
    expect([existsSync(join(outside, 'web-1')), host.statesOf(actionId)]).toStrictEqual([false, ['running']]);
  });

  it('D46 deploy/web-1 has nothing removed where it leads', async () => {
    const host = makeControlHost();
    await dispatchAndReport(host);
    const outside = leadOut(host, 'deploy/web-1');
    const end = await host.reeve('action', 'settle');
    expect([end.status, readdirSync(outside)]).toStrictEqual([1, [`${actionId}.json`]]);
    expect(host.statesOf(actionId)).toStrictEqual(['running']);
  });

  it.each([
    ['approved', ['action', 'approve', actionId, '--yes'], 'pending'],
    ['rejected', ['action', 'reject', actionId, '--yes'], 'pending'],
    ['pending', ['action', 'approve', actionId, '--yes'], 'pending'],
  ])('D46 %s has no action moved into it, or out of it', async (name, words, state) => {
    const host = makeControlHost();
    host.propose();
    const before = host.bytes(`homelab/actions/pending/${actionId}.json`);
    const outside = leadOut(host, name);
    const end = await host.reeve(...words);
    expect([end.status, end.stderr]).toStrictEqual([78, expect.stringContaining(`${host.root}/${name}`)]);
    expect(end.stderr).not.toContain('/proc/');
    expect(readdirSync(outside)).toStrictEqual(name === state ? [`${actionId}.json`] : []);
    expect(host.bytes(`homelab/actions/${state}/${actionId}.json`)).toStrictEqual(before);
  });

  it.each(['events/web-1', 'events'])('D46 %s brings no result from elsewhere', async (name) => {
    const host = makeControlHost();
    await dispatchAndReport(host);
    leadOut(host, `../${name}`);
    const end = await host.reeve('action', 'settle');
    expect(host.statesOf(actionId)).toStrictEqual(['running']);
    expect(end.stdout + end.stderr).toContain('nothing is followed there');
  });

  it('D46 as actions.root is refused by name', async () => {
    const host = makeControlHost();
    leadOut(host, '../actions');
    host.propose();
    const end = await host.reeve('action', 'list');
    expect([end.status, end.stderr]).toStrictEqual([
      78,
      expect.stringContaining('nothing is followed there'),
    ]);
  });
});

/** Puts a link to a directory of root's into the place of each empty one that is being made, and says how often it could. */
const swapper = (outside: string): string => `
  const { readdirSync, rmdirSync, symlinkSync } = require('node:fs');
  process.setgid(1000);
  process.setuid(1000);
  let swaps = 0;
  process.stdin.on('end', () => { console.log('swaps ' + swaps); process.exit(); }).resume();
  console.log('ready');
  const swap = () => {
    const until = Date.now() + 20;
    while (Date.now() < until)
      for (const name of readdirSync('.').filter((one) => one.startsWith('.reeve-directory-')))
        try { rmdirSync(name); symlinkSync(${JSON.stringify(outside)}, name); if ((swaps += 1) === 1) console.log('swapped'); } catch {}
    setImmediate(swap);
  };
  swap();
`;

describe.skipIf(process.geteuid?.() !== 0)('a directory that is made', () => {
  it('D46 is given away, and nothing that somebody puts in its place', async () => {
    const host = makeControlHost();
    for (const path of [host.dir, join(host.dir, 'homelab')]) chmodSync(path, 0o755);
    const [deploy, outside] = [join(host.root, 'deploy'), join(host.dir, 'outside')];
    mkdirSync(deploy);
    chownSync(deploy, 1000, 1000);
    mkdirSync(outside, { mode: 0o700 });
    const other = startProcess('env', ['-C', deploy, process.execPath, '-e', swapper(outside)]);
    onTestFinished(() => void other.child.kill('SIGKILL'));
    await other.waitFor('ready');
    const bytes = Buffer.from(JSON.stringify(anAction()));
    let made = 0;
    let hasSwapped = false;
    other.waitFor('swapped').then(
      () => {
        hasSwapped = true;
      },
      () => {},
    );
    // For as long as it takes until both have been fast enough now and then.
    for (let index = 0; index < 1500 || (index < 20_000 && !(hasSwapped && made > 0)); index += 1) {
      const end = await writeDispatched({ root: host.root, node: `n${index}`, id: actionId }, bytes).then(
        () => 1,
        () => 0,
      );
      made += end;
    }
    other.child.stdin.end();
    const { stdout } = await other.ended;
    const { uid, mode } = statSync(outside);
    expect([uid, mode & 0o777, readdirSync(outside)]).toStrictEqual([0, 0o700, []]);
    expect(Number(/swaps (\d+)/.exec(stdout)?.[1])).toBeGreaterThan(0);
    expect(made).toBeGreaterThan(0);
    const own = readdirSync(deploy).filter((name) => name.startsWith('n'));
    expect(own).toHaveLength(made);
    for (const name of own) expect(statSync(join(deploy, name)).uid).toBe(1000);
  });
});

/** As reeve-action.service has it. */
const confined = [
  ...['setpriv', '--no-new-privs', '--bounding-set', '-all,+dac_override,+chown,+fowner'],
  ...['--inh-caps', '-all'],
];

describe.skipIf(process.geteuid?.() !== 0)("a tree of a container's user", () => {
  it('D3 D11 is worked in with three capabilities, and all of it stays its', async () => {
    const host = makeControlHost();
    host.propose();
    const run = (...words: string[]) => host.start(words, confined).end;
    execFileSync('chown', ['-R', '1000:1000', join(host.dir, 'homelab')]);
    expect((await run('action', 'approve', actionId, '--yes')).status).toBe(0);
    expect((await run('action', 'dispatch')).status).toBe(0);
    host.age(actionId, 901);
    chownSync(join(host.root, 'running', `${actionId}.json`), 1000, 1000);
    expect((await run('action', 'settle')).status).toBe(0);
    expect(host.statesOf(actionId)).toStrictEqual(['failed']);
    for (const name of ['deploy', 'deploy/web-1', `failed/${actionId}.json`])
      expect([name, statSync(join(host.root, name)).uid]).toStrictEqual([name, 1000]);
  });
});
