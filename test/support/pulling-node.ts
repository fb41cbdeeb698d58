// A node that pulls its actions from a real sshd, out of a temporary directory; reeve is run from source.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FarSide, makeFarSide } from './far-side.ts';
import { type Machine, makeMachine } from './machine.ts';
import type { Sshd } from './sshd.ts';
import { makeTempDir } from './temp.ts';

export type PullingNode = Machine & {
  readonly far: FarSide;
  /** Names in one of the directories below `actions`, without those that begin with a dot. */
  names(place: 'staging' | 'inbox' | 'outbox' | 'processed-deploy-actions'): string[];
  path(place: string, name: string): string;
  /** An action at the source. */
  approve(actionId: string, over?: Readonly<Record<string, unknown>>): string;
  /** A result in the outbox; gives its name. */
  result(actionId: string, epochMs?: number): string;
  pull(env?: Readonly<Record<string, string>>): Promise<PullEnd>;
};

export type PullEnd = { status: number | null; stderr: string; json: Readonly<Record<string, unknown>> };

export function makePullingNode(sshd: Sshd, over: Readonly<Record<string, string>> = {}): PullingNode {
  const far = makeFarSide(sshd, makeTempDir());
  const { pull, push } = far;
  const machine = makeMachine({ actions: { node: 'web-1', pull, push, checkout: '/opt/checkout', ...over } });
  far.moveTo(machine.root);
  const path = (place: string, name: string): string => join(machine.stateDir, 'actions', place, name);
  return {
    ...machine,
    ...{ far, path },
    names: (place) => {
      const directory = path(place, '');
      return existsSync(directory)
        ? readdirSync(directory)
            .filter((name) => !name.startsWith('.'))
            .sort()
        : [];
    },
    approve: (actionId, fields) => {
      const text = renderAction(actionId, fields);
      writeFileSync(join(far.deploy, `${actionId}.json`), text);
      return text;
    },
    result: (actionId, epochMs = 1_790_000_000_000) => {
      const name = `evt-web-1-${String(epochMs).padStart(13, '0')}-action_result-${actionId}.json`;
      mkdirSync(path('outbox', ''), { recursive: true });
      writeFileSync(path('outbox', name), `{"of":"${actionId}"}\n`);
      return name;
    },
    pull: async (env) => {
      const { status, stderr, stdout } = await machine.start(['rsync-pull', '--json'], env).ended;
      return { status, stderr, json: JSON.parse(stdout || '{}') };
    },
  };
}

function renderAction(actionId: string, over: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    ...{ action_id: actionId, type: 'redeploy', node: 'web-1', service: 'blog', status: 'approved' },
    transition_history: [{ from: 'pending', to: 'approved', timestamp: 1_790_000_000, by: 'operator-tg-7' }],
    ...over,
  });
}

/** What is in a directory, by name. */
export function readTree(directory: string, isMeant = (_: string): boolean => true): Record<string, string> {
  const names = readdirSync(directory).filter(isMeant).sort();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(directory, name), 'utf8')]));
}
