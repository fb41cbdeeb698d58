// Others who take no lock, at the very moment of a move: a program in the place of mv does, before or after, what they do.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  actionId,
  anAction,
  type ControlEnd,
  type ControlHost,
  makeControlHost,
} from '../../support/control-host.ts';

const file = `${actionId}.json`;
const leftOver = /^\.reeve-(move|part)-/;

type Meanwhile = { before?: string; after?: string };

/** Runs a command, with a shell's words around its first mv; `$ROOT` is the tree, `$OTHERS` what others have ready. */
async function runWhile(
  host: ControlHost,
  words: readonly string[],
  meanwhile: Meanwhile,
): Promise<ControlEnd> {
  const { before = ':', after = ':' } = meanwhile;
  const bin = join(host.dir, 'bin');
  mkdirSync(bin, { recursive: true });
  const script = [
    '#!/bin/sh',
    `PATH=/usr/bin:/bin ROOT='${host.root}' OTHERS='${host.dir}/others'`,
    'export PATH',
    `[ -e '${bin}/done' ] && exec mv "$@"`,
    `: > '${bin}/done'`,
    ...[
      `{ ${before}; } >/dev/null 2>&1`,
      'mv "$@"',
      'status=$?',
      `{ ${after}; } >/dev/null 2>&1`,
      'exit $status',
    ],
  ];
  writeFileSync(join(bin, 'mv'), script.join('\n'));
  chmodSync(join(bin, 'mv'), 0o755);
  rmSync(join(bin, 'done'), { force: true });
  const end = await host.start(words, ['env', `PATH=${bin}:${process.env['PATH']}`]).end;
  // It has come so far.
  readFileSync(join(bin, 'done'));
  return end;
}

/** What somebody else writes under the same id, each told by its word. */
function haveReady(host: ControlHost, word: string, fields: Record<string, unknown> = {}): Buffer {
  host.write(`others/${word}.json`, { ...anAction(), ...fields, correlation_id: word });
  return host.bytes(`others/${word}.json`);
}

function leftOvers(host: ControlHost): string[] {
  return ['pending', 'approved', 'running', 'failed'].flatMap((state) =>
    host.names(`homelab/actions/${state}`, true).filter((name) => leftOver.test(name)),
  );
}

const at = (host: ControlHost, state: string): Buffer => host.bytes(`homelab/actions/${state}/${file}`);
const approve = ['action', 'approve', actionId, '--yes'];
const writeAnew = 'mv -f "$OTHERS/second.json" "$ROOT/pending/$FILE"'.replace('$FILE', file);

describe('while a pending action is approved', () => {
  it.each(['cancelled', 'rejected', 'approved'])(
    'D3 whoever moves it to %s first has his way, and second finds it gone',
    async (to) => {
      const move = `mv "$ROOT/pending/${file}" "$ROOT/${to}/"`;
      const first = makeControlHost();
      first.propose();
      const lost = await runWhile(first, approve, { before: move });
      expect([first.statesOf(actionId), lost.status]).toStrictEqual([[to], to === 'approved' ? 0 : 65]);
      expect(leftOvers(first)).toStrictEqual([]);

      const second = makeControlHost();
      second.propose();
      const won = await runWhile(second, approve, { after: move });
      expect([second.statesOf(actionId), won.status]).toStrictEqual([['approved'], 0]);
      expect(second.read('approved', actionId).transition_history).toHaveLength(1);
      expect(leftOvers(second)).toStrictEqual([]);
    },
  );

  it('D3 one that comes to where it goes is not replaced, and it stays', async () => {
    const host = makeControlHost();
    host.propose();
    const [pending, second] = [at(host, 'pending'), haveReady(host, 'second', { status: 'approved' })];
    const end = await runWhile(host, approve, {
      before: `cp "$OTHERS/second.json" "$ROOT/approved/${file}"`,
    });
    expect([end.status, at(host, 'pending'), at(host, 'approved')]).toStrictEqual([65, pending, second]);
    expect(leftOvers(host)).toStrictEqual([]);
  });

  it('D3 one that is written in its place is pending as it was written', async () => {
    const host = makeControlHost();
    host.propose();
    const second = haveReady(host, 'second');
    const end = await runWhile(host, approve, { before: writeAnew });
    expect(end).toMatchObject({
      status: 65,
      stderr: expect.stringContaining('it was written anew meanwhile'),
    });
    expect([host.statesOf(actionId), at(host, 'pending'), leftOvers(host)]).toStrictEqual([
      ['pending'],
      second,
      [],
    ]);
  });

  it('D3 a third that is written meanwhile is not replaced by the second', async () => {
    const host = makeControlHost();
    host.propose();
    haveReady(host, 'second');
    const third = haveReady(host, 'third');
    const after = `cp "$OTHERS/third.json" "$ROOT/pending/${file}"`;
    const end = await runWhile(host, approve, { before: writeAnew, after });
    expect([end.status, host.statesOf(actionId), at(host, 'pending')]).toStrictEqual([
      65,
      ['pending'],
      third,
    ]);
    expect(leftOvers(host)).toStrictEqual([]);
  });

  it('D3 O70 one that nobody has seen is not approved by a kill', async () => {
    const host = makeControlHost();
    host.propose();
    const second = haveReady(host, 'second');
    const end = await runWhile(host, approve, { before: writeAnew, after: 'kill -9 $PPID' });
    expect([end.signal, host.statesOf(actionId)]).toStrictEqual(['SIGKILL', ['approved']]);
    expect((await host.reeve('action', 'dispatch')).status).toBe(0);
    expect([host.statesOf(actionId), at(host, 'pending')]).toStrictEqual([['pending'], second]);
    expect([leftOvers(host), host.names('homelab/actions').includes('deploy')]).toStrictEqual([[], false]);
  });
});

describe('while an approved action is dispatched', () => {
  it('D3 a running one of its id that comes is not replaced, and it stays approved and is at no node', async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve(...approve);
    const [approved, second] = [at(host, 'approved'), haveReady(host, 'second', { status: 'running' })];
    const before = `cp "$OTHERS/second.json" "$ROOT/running/${file}"`;
    const end = await runWhile(host, ['action', 'dispatch'], { before });
    expect([end.status, at(host, 'approved'), at(host, 'running')]).toStrictEqual([1, approved, second]);
    expect([host.names('homelab/actions/deploy/web-1', true), leftOvers(host)]).toStrictEqual([[], []]);
  });
});

describe('what has ended', () => {
  it('D11 D46 is not replaced by what is no action', async () => {
    const host = makeControlHost();
    host.propose();
    await host.reeve(...approve);
    await host.reeve('action', 'dispatch');
    host.age(actionId, 901);
    await host.reeve('action', 'settle');
    const failed = at(host, 'failed');
    for (const text of ['no action', 'none either', 'no action']) {
      host.write(`homelab/actions/approved/${file}`, text);
      const end = await host.reeve('action', 'dispatch');
      expect([end.status, host.statesOf(actionId), at(host, 'failed')]).toStrictEqual([
        0,
        ['failed'],
        failed,
      ]);
    }
    const beside = host.names('homelab/actions/failed').filter((name) => name !== file);
    expect(
      beside.map((name) => host.bytes(`homelab/actions/failed/${name}`).toString()).sort(),
    ).toStrictEqual(['no action', 'none either']);
    expect(leftOvers(host)).toStrictEqual([]);
    // Without an earlier one it has the name.
    renameSync(join(host.root, 'failed', file), join(host.dir, file));
    host.write(`homelab/actions/approved/${file}`, 'no action');
    await host.reeve('action', 'dispatch');
    expect(at(host, 'failed').toString()).toBe('no action');
  });
});
