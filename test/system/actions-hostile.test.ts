// A control host that means no good, between two booted machines: what it offers goes through the units of the node with their
// sandbox. Nothing of it runs, nothing outside the inbox is read, and each refusal is told.

import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { foreignNames } from '../support/foreign-names.ts';
import { describeHost, tellFigure, whenIdle } from '../support/system.ts';
import { startTwoHosts, type TwoHosts } from '../support/two-hosts.ts';

const deploy = '/opt/homelab/actions/deploy/web-1';
const state = '/var/lib/reeve/actions';
const secret = 'canary-of-a-secret';
const [canary, seen] = ['/run/canary', '/run/seen'];
const trap = '/var/tmp/trap';
/** What would leave a trace, were it ever run, sourced or taken for an argument. */
const evil = {
  command: `touch ${trap}`,
  args: ['--build', `; touch ${trap}`],
  image: 'evil:latest',
  env: { LD_PRELOAD: '/tmp/evil.so', PATH: '/tmp/evil', BASH_ENV: `/tmp/evil$(touch ${trap})` },
  script: `/bin/sh -c "touch ${trap}"`,
  entrypoint: [`touch ${trap}`],
  details: { reason: `$(touch ${trap})`, image: 'evil:latest', command: `touch ${trap}` },
};

const idOf = (word: string): string => `redeploy-web-1-${word}`;

function anApproval(word: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const timestamp = Math.floor(Date.now() / 1000);
  return {
    ...{ action_id: idOf(word), type: 'redeploy', node: 'web-1', service: 's0', risk: 'guarded' },
    ...{ status: 'approved', created_at: timestamp, updated_at: timestamp, ...evil },
    transition_history: [{ from: 'pending', to: 'approved', timestamp, by: 'operator-eve' }],
    ...more,
  };
}

/** Under names of actions: whoever waits for one is told that it has failed. */
const documents: Readonly<Record<string, unknown>> = {
  'type-shell': anApproval('type-shell', { type: 'shell' }),
  'type-list': anApproval('type-list', { type: ['redeploy'] }),
  'other-node': anApproval('other-node', { node: 'web-2' }),
  'service-path': anApproval('service-path', { service: '../s0' }),
  'service-flag': anApproval('service-flag', { service: '--build' }),
  'service-break': anApproval('service-break', { service: 's0\nreboot' }),
  'service-shell': anApproval('service-shell', { service: `$(touch ${trap})` }),
  'service-unlisted': anApproval('service-unlisted', { service: 'unlisted' }),
  'service-none': anApproval('service-none', { service: undefined }),
  'other-id': anApproval('s0'),
  'path-id': { ...anApproval('path-id'), action_id: '../../etc/x' },
  'history-text': anApproval('history-text', { transition_history: 'approved' }),
  empty: '',
  nul: '\0',
  cut: '{"action_id":"redeploy-web-1-cut"',
  list: '[]',
  deep: '['.repeat(30_000),
  shell: `#!/bin/sh\ntouch ${trap}\n`,
};

/** Under names of actions too, and no plain files of an action's size. */
const things: Readonly<Record<string, string>> = {
  absolute: `ln -s ${canary} "$1"`,
  climbing: `ln -s ../../../../../..${canary} "$1"`,
  'link-to-action': 'ln -s /run/action.json "$1"',
  'link-to-nothing': 'ln -s /none "$1"',
  'link-to-itself': 'ln -s "$1" "$1"',
  'link-to-directory': 'ln -s /etc "$1"',
  pipe: 'mkfifo "$1"',
  device: 'mknod "$1" c 1 5',
  socket: `python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$1"`,
  directory: 'mkdir "$1"; cp /run/action.json "$1/inner.json"',
  large: 'truncate -s 50M "$1"',
  'one-too-many': 'truncate -s 65537 "$1"',
};

describeHost('a node with a hostile control host', () => {
  let hosts: TwoHosts;
  beforeAll(async () => {
    hosts = await startTwoHosts();
    await hosts.useTeller(['s0', 's1']);
    for (const host of [hosts.node, hosts.control]) {
      await host.sh(`
        for file in ${canary} ${seen}; do echo ${secret} >$file; chmod 644 $file; touch -a -d 2001-01-01 $file; done
        cat ${seen} >/dev/null
      `);
    }
    await hosts.control.write('/run/action.json', JSON.stringify(anApproval('link-to-action')));
  }, 300_000);
  afterAll(() => hosts?.stop());

  it('runs nothing of it, reads nothing outside, and tells of each refusal (D29 to D35, D46, O68)', async () => {
    const { control, node } = hosts;
    const since = (await node.sh('date +%s.%N')).trim();
    // A stop while they are put there: the node finds them all at once.
    await stopPulls();
    await put(`${idOf('s0')}.json`, JSON.stringify(anApproval('s0')));
    for (const [word, content] of Object.entries(documents)) {
      await put(`${idOf(word)}.json`, typeof content === 'string' ? content : JSON.stringify(content));
    }
    for (const [word, script] of Object.entries(things)) {
      await control.output(['sh', '-euc', `cd ${deploy}; ${script}`, 'sh', `${idOf(word)}.json`]);
    }
    // Each holds one that would be fine.
    for (const name of foreignNames) await put(name, JSON.stringify(anApproval('s0')));
    await node.output(['systemctl', 'start', 'reeve-rsync-pull.timer']);

    const refused = [...Object.keys(documents), ...Object.keys(things)].map(idOf);
    await control.waitFor(
      'a word about each of them',
      async () => {
        const words = readEvents();
        const silent = refused.filter((id) => words.get(id)?.length !== 1);
        if (silent.length > 0) throw new Error(`none, or too many, of ${silent.join(' ')}`);
        return words.has(idOf('s0'));
      },
      { timeoutMs: 90_000, everyMs: 500 },
    );
    // Once more of everything: nobody is told twice. The runs that refuse fail, and may just be about to.
    await whenIdle(node, 'reeve-deploy-action.service');
    await whenIdle(node, 'reeve-rsync-pull.service');
    await node.output(['systemctl', 'start', 'reeve-rsync-pull', 'reeve-deploy-action']);
    const words = readEvents();
    expect([...words.keys()].sort()).toEqual([...refused, idOf('s0')].sort());
    for (const id of refused) expect(words.get(id), id).toMatchObject([{ status: 'failed' }]);
    expect(words.get(idOf('s0'))).toMatchObject([{ status: 'completed' }]);

    // The one that was fine has run by its name alone.
    const begun = (await hosts.told()).filter((line) => line.startsWith('begin '));
    expect(begun).toHaveLength(1);
    expect(begun[0]).toMatch(/^begin s0 args=--force-recreate s0 env=/);
    expect(begun[0]).not.toMatch(/LD_PRELOAD|BASH_ENV|evil/);

    await expectNamesTold(since);
    await expectUntouched();
  }, 240_000);

  it('takes none of 100,000 files, in bounded time, and goes on when they are gone', async () => {
    const { control, node } = hosts;
    const since = (await node.sh('date +%s.%N')).trim();
    await control.sh(`rm -rf ${deploy}; install -d -o deploy -g deploy ${deploy}`);
    await stopPulls();
    await control.output([
      ...['python3', '-c'],
      'import os,sys\nfor i in range(100000): os.close(os.open(f"{sys.argv[1]}/redeploy-web-1-{i}.json", os.O_CREAT, 0o644))',
      deploy,
    ]);
    const startedAtMs = performance.now();
    const end = await node.run(['systemctl', 'start', 'reeve-rsync-pull']);
    const tookS = (performance.now() - startedAtMs) / 1000;
    tellFigure(`a pull from 100,000 files is refused by its unit in ${tookS.toFixed(1)} s`);
    expect(end.status).not.toBe(0);
    expect(tookS).toBeLessThan(60);
    const journal = await node.journal('-u', 'reeve-rsync-pull', `--since=@${since}`);
    expect(journal.some(({ message }) => message.includes('more than 2000 entries'))).toBe(true);
    expect(await node.sh(`ls -A ${state}/inbox; ls -A ${state}/staging | grep '[0-9].json' || true`)).toBe(
      '',
    );
    await control.sh(`find ${deploy} -name 'redeploy-web-1-[0-9]*' -delete`);
    await node.output(['systemctl', 'start', 'reeve-rsync-pull.timer']);
    const id = await hosts.propose('s1');
    await hosts.approve(id);
    expect(await hosts.settled(id)).toBe('completed');
    expect((await hosts.told()).filter((line) => line.startsWith('begin '))).toHaveLength(2);
    await expectUntouched();
  }, 180_000);

  async function stopPulls(): Promise<void> {
    await hosts.node.output(['systemctl', 'stop', 'reeve-rsync-pull.timer']);
    await whenIdle(hosts.node, 'reeve-rsync-pull.service');
  }

  /** What has no action's name is told on the node: each by its name, once, and as one line. */
  async function expectNamesTold(since: string): Promise<void> {
    const journal = await hosts.node.journal('-u', 'reeve-rsync-pull', `--since=@${since}`);
    const lines = journal.filter(({ message }) => message.includes('is left alone'));
    const tellers = (name: string) => {
      const word = JSON.stringify(name).replaceAll('\u202E', '\\u202e');
      return lines.filter(({ message }) => message.includes(`${word} at the source`));
    };
    expect(foreignNames.filter((name) => tellers(name).length !== 1)).toEqual([]);
    const text = lines.map(({ message }) => message).join('');
    expect(['\u001b', '\u202E', '\n'].filter((character) => text.includes(character))).toEqual([]);
    expect([...new Set(lines.map(({ unit }) => unit))]).toEqual(['reeve-rsync-pull.service']);
  }

  async function put(name: string, content: string): Promise<void> {
    await hosts.control.output(['sh', '-euc', 'cd "$1"; cat >"./$2"', 'sh', deploy, name], {
      input: content,
    });
  }

  type Word = { status: string };

  function readEvents(): Map<string, Word[]> {
    const directory = hosts.control.outside('/opt/homelab/events/web-1');
    const words = new Map<string, Word[]>();
    for (const name of readdirSync(directory).filter((one) => one.startsWith('evt-'))) {
      const { correlation_id: id, payload } = JSON.parse(readFileSync(`${directory}/${name}`, 'utf8'));
      words.set(id, [...(words.get(id) ?? []), payload]);
    }
    return words;
  }

  /** No trap has gone off, and nobody has opened what the links lead to. */
  async function expectUntouched(): Promise<void> {
    for (const host of [hosts.node, hosts.control]) {
      expect(await host.exists(trap)).toBe(false);
      const [opened, never] = (await host.sh(`stat -c %x ${seen} ${canary}`)).split('\n');
      // That a look leaves a trace here at all.
      expect(opened).not.toMatch(/^2001-/);
      expect(never).toMatch(/^2001-/);
    }
    const kept = await hosts.node.run([
      'grep',
      '-rl',
      secret,
      '/var/lib/reeve',
      '/run/reeve',
      '/var/cache/reeve',
    ]);
    expect(kept.stdout).toBe('');
    expect((await hosts.control.run(['grep', '-rl', secret, '/opt/homelab/events'])).stdout).toBe('');
    // What has been told of leaves it a moment later.
    await hosts.node.waitFor('an empty inbox', async () => {
      return (await hosts.node.sh(`ls -A ${state}/inbox`)) === '';
    });
  }
});
