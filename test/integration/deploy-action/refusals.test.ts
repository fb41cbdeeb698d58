// What `reeve deploy-action` refuses: nothing of it runs, all of it leaves the inbox, and whoever waits is told.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { newStagingPath } from '../../../src/lib/state/staging.ts';
import { anApprovedAction, makeActionsNode } from '../../support/actions-node.ts';
import { mountSmall } from '../../support/full-disk.ts';

describe('what is invalid', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['another type (D28)', { type: 'disk-cleanup' }, 'type is "disk-cleanup", not "redeploy"'],
    ['another node (D29)', { node: 'pi' }, 'node is "pi", and this is "vps"'],
    ['a service that climbs (D30)', { service: '../web' }, 'invalid action: service is no kebab-case name'],
    [
      'a service with a dash in front (D30)',
      { service: '-web' },
      'invalid action: service is no kebab-case name',
    ],
    [
      'a service with a line break (D30)',
      { service: 'web\n' },
      'invalid action: service is no kebab-case name',
    ],
    [
      'a service that is not listed (D31)',
      { service: 'grafana' },
      'service grafana is not in hosts/vps/services.yaml',
    ],
    [
      'another id (D46)',
      { action_id: 'redeploy-vps-db' },
      'action_id is "redeploy-vps-db", unlike the name of its file',
    ],
    ['no id', { action_id: undefined }, 'invalid action: action_id is no text'],
  ])('by %s runs nothing, is told once and kept for a look (D33, D45)', async (_, more, reason) => {
    const node = makeActionsNode();
    node.put('web', more);
    const { status } = await node.reeve('deploy-action');
    expect(status).toBe(1);
    expect(node.results()).toMatchObject([
      { actionId: 'redeploy-vps-web', status: 'failed', reason: `rejected: ${reason}` },
    ]);
    expect([node.ran(), node.inbox()]).toEqual([[], []]);
    expect(node.quarantine()).toEqual([expect.stringMatching(/-redeploy-vps-web\.json$/)]);
    // The same file again is no news.
    node.put('web', more);
    expect((await node.reeve('deploy-action')).status).toBe(0);
    expect([node.results().length, node.inbox(), node.quarantine().length]).toEqual([1, [], 1]);
  });

  it('by a checkout without its compose file or its list runs nothing (D31, D32)', async () => {
    const node = makeActionsNode();
    rmSync(join(node.root, 'checkout/services/web/docker-compose.yml'));
    node.put('web');
    await node.reeve('deploy-action');
    node.write('checkout/hosts/vps/services.yaml', 'web: {}\n');
    node.put('db');
    await node.reeve('deploy-action');
    rmSync(join(node.root, 'checkout'), { recursive: true });
    node.put('queue');
    await node.reeve('deploy-action');
    expect(node.results().map(({ reason }) => reason)).toEqual([
      'rejected: there is no services/web/docker-compose.yml',
      expect.stringMatching(/^rejected: hosts\/vps\/services.yaml cannot be used: it is no list of services/),
      expect.stringMatching(/^rejected: hosts\/vps\/services.yaml cannot be used: .*ENOENT/),
    ]);
    expect([node.ran(), node.inbox()]).toEqual([[], []]);
  });

  it('by a list that is a pipe or a device runs nothing, and by one that is a link does (D31)', async () => {
    const node = makeActionsNode();
    const list = join(node.root, 'checkout/hosts/vps/services.yaml');
    for (const make of [
      ['mkfifo', list],
      ['mknod', list, 'c', '1', '5'],
    ] as const) {
      rmSync(list);
      execFileSync(make[0], make.slice(1));
      node.put(make[0] === 'mkfifo' ? 'web' : 'db');
      expect((await node.reeve('deploy-action')).status).toBe(1);
    }
    expect(node.results().map(({ reason }) => reason)).toEqual([
      expect.stringMatching(/cannot be used: cannot read .*services.yaml": it is a pipe$/),
      expect.stringMatching(/cannot be used: cannot read .*services.yaml": it is a device$/),
    ]);
    rmSync(list);
    node.write('checkout/hosts/common.yaml', 'services: [queue]\n');
    symlinkSync('../common.yaml', list);
    node.put('queue');
    expect((await node.reeve('deploy-action')).status).toBe(0);
    expect(node.ran()).toEqual(['queue']);
  });

  it('by what it is leaves the inbox, whatever it is, and nothing outside is read or changed (D46, O64, O68)', async () => {
    const node = makeActionsNode();
    const canary = node.write('canary/redeploy-vps-web.json', JSON.stringify(anApprovedAction('web')), 0o600);
    const at = (name: string): string => join(node.places.inbox, name);
    symlinkSync(canary, at('redeploy-vps-web.json'));
    symlinkSync(join(node.root, 'canary'), at('linked-directory.json'));
    symlinkSync('../../../../../../etc/shadow', at('climbs.json'));
    execFileSync('mkfifo', [at('pipe.json')]);
    execFileSync('mknod', [at('device.json'), 'b', '7', '200']);
    mkdirSync(at('directory.json/deep/deeper'), { recursive: true });
    writeFileSync(at('directory.json/deep/a.json'), JSON.stringify(anApprovedAction('web')));
    mkdirSync(at('.part'));
    writeFileSync(at('.part/redeploy-vps-web.json'), JSON.stringify(anApprovedAction('web')));
    mkdirSync(at('.~tmp~'));
    for (const name of [
      '.redeploy-vps-web.json.Ab12Xy',
      'Redeploy.json',
      'a b.json',
      '-rf',
      'x\n.json',
      '\u001b[2J.json',
    ]) {
      writeFileSync(at(name), JSON.stringify(anApprovedAction('web')));
    }
    writeFileSync(Buffer.concat([Buffer.from(`${node.places.inbox}/`), Buffer.from([0xff, 0xfe])]), 'x');
    writeFileSync(at('huge.json'), '{');
    truncateSync(at('huge.json'), 50 * 1024 * 1024);
    const { status, stdout } = await node.reeve('deploy-action');
    expect(status).toBe(1);
    expect([node.ran(), node.inbox()]).toEqual([[], []]);
    const told = node.results().map(({ actionId, reason }) => `${actionId}: ${reason}`);
    expect(told.sort()).toEqual([
      'climbs: rejected: it is a symbolic link',
      'device: rejected: it is a device',
      'directory: rejected: it is a directory',
      'huge: rejected: it is larger than 65536 bytes',
      'linked-directory: rejected: it is a symbolic link',
      'pipe: rejected: it is a pipe',
      'redeploy-vps-web: rejected: it is a symbolic link',
    ]);
    expect(stdout).toMatch(/set aside: .* is no name of an action, and so are 8 more/);
    expect(stdout).not.toContain('\u001b');
    expect(readFileSync(canary, 'utf8')).toBe(JSON.stringify(anApprovedAction('web')));
    expect((await node.reeve('deploy-action')).stdout).toBe('nothing to do\n');
  });

  it('by the thousand leaves the inbox as well, and is not kept by the thousand', async () => {
    const node = makeActionsNode();
    for (let count = 0; count < 5_000; count += 1)
      writeFileSync(join(node.places.inbox, `X${count}.json`), '{}');
    node.put('web');
    const startedAtMs = performance.now();
    expect((await node.reeve('deploy-action')).status).toBe(1);
    expect(performance.now() - startedAtMs).toBeLessThan(60_000);
    expect([node.inbox(), node.ran(), node.quarantine().length]).toEqual([[], ['web'], 200]);
  });

  it('by being mounted there stays, is told each time, and keeps nothing else from leaving', async () => {
    const node = makeActionsNode();
    for (const name of ['A', 'M', 'redeploy-vps-db.json', 'z']) mkdirSync(join(node.places.inbox, name));
    mountSmall(join(node.places.inbox, 'M'), 'size=16k');
    mountSmall(join(node.places.inbox, 'redeploy-vps-db.json'), 'size=16k');
    node.put('web');
    const first = await node.reeve('deploy-action');
    expect([first.status, first.stdout]).toEqual([1, expect.stringContaining('EBUSY')]);
    expect([node.ran(), node.inbox()]).toEqual([['web'], ['M', 'redeploy-vps-db.json']]);
    const second = await node.reeve('deploy-action');
    expect([second.status, second.stdout]).toEqual([1, expect.stringContaining('EBUSY')]);
    expect(node.results().map(({ actionId }) => actionId)).toEqual(['redeploy-vps-db', 'redeploy-vps-web']);
  });

  it('is not what another process is just writing there', async () => {
    const node = makeActionsNode();
    node.put('web');
    // As the writer of state files names it, by a process that is there.
    const staged = newStagingPath(node.places.inbox);
    writeFileSync(staged, '{');
    await node.reeve('deploy-action');
    expect([node.ran(), node.inbox().length]).toEqual([['web'], 1]);
    rmSync(staged);
  });
});
