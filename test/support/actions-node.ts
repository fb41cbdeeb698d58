// A node with the section `actions` alone: a checkout with a deploy script of its own, which notes how it was called, and an inbox.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { inject } from 'vitest';
import type { Marker } from '../../src/lib/actions/markers.ts';
import { actionPlaces } from '../../src/lib/actions/places.ts';
import type { ActionResult } from '../../src/lib/deploy-runner/event.ts';
import { parseResultEvent } from '../../src/lib/deploy-runner/event.ts';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type ActionsNode = {
  readonly root: string;
  readonly places: ReturnType<typeof actionPlaces>;
  readonly env: Readonly<Record<string, string>>;
  /** Of a file below the root. */
  write(name: string, content: string, mode?: number): string;
  /** The body of the deploy script, after it has noted that it runs. `$ROOT` is the root. */
  writeScript(body: string): void;
  /**
   * As `anApprovedAction` gives it, by an approval that no other node has: what a deploy runs is known by that on all of the machine,
   * and other tests run beside this one.
   */
  approved(service: string, more?: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Such a redeploy in the inbox, whole from the start, as the pull brings it. */
  put(service: string, more?: Readonly<Record<string, unknown>>): string;
  reeve(...words: string[]): Promise<ProgramEnd>;
  start(...words: string[]): Program;
  /** Services for which the script has run, in this order. */
  ran(): string[];
  inbox(): string[];
  quarantine(): string[];
  results(): ActionResult[];
  /** The outcome and the kind of each marker's state, by action, as `redeploy-vps-web reported succeeded`. */
  markers(): string[];
};

const services = ['web', 'db', 'node-agent', 'queue'];

export function anApprovedAction(
  service: string,
  more: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    ...{ action_id: `redeploy-vps-${service}`, type: 'redeploy', node: 'vps', service, risk: 'guarded' },
    ...{ status: 'approved', created_at: 1_785_700_000, updated_at: 1_785_700_100 },
    details: { image: `registry.example/${service}:1`, reason: 'unhealthy' },
    transition_history: [
      { from: null, to: 'pending', timestamp: 1_785_700_000, by: 'system' },
      { from: 'pending', to: 'approved', timestamp: 1_785_700_100, by: 'operator-tg-7' },
    ],
    ...more,
  };
}

function nameApprovals(action: Record<string, unknown>, place: string): Record<string, unknown> {
  const { transition_history: history } = action;
  if (!Array.isArray(history)) return action;
  const named = (history as { to?: string; by?: string }[]).map((one) =>
    one.to === 'approved' ? { ...one, by: `${one.by} in ${place}` } : one,
  );
  return { ...action, transition_history: named };
}

/** What a script has written into `$ROOT/pid`; 0 until then. */
export function readPid({ root }: ActionsNode): number {
  const path = join(root, 'pid');
  return existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0;
}

export function makeActionsNode(
  section: Readonly<Record<string, unknown>> = {},
  root = makeTempDir(),
): ActionsNode {
  const places = actionPlaces({ stateDir: join(root, 'state') });
  const write: ActionsNode['write'] = (name, content, mode = 0o644) => {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    chmodSync(path, mode);
    return path;
  };
  const writeScript = (body: string): void => {
    const head = `#!/bin/sh\nROOT='${root}'\necho "$*" >> "$ROOT/ran"\n`;
    write('checkout/scripts/deploy/deploy-service.sh', `${head}${body}\n`, 0o755);
  };
  for (const service of services) write(`checkout/services/${service}/docker-compose.yml`, 'services: {}\n');
  write('checkout/hosts/vps/services.yaml', `services: [${services.join(', ')}]\n`);
  writeScript('');
  mkdirSync(places.inbox, { recursive: true, mode: 0o700 });
  const actions = {
    ...{
      node: 'vps',
      pull: join(root, 'source/'),
      push: join(root, 'events/'),
      checkout: join(root, 'checkout'),
    },
    ...{ script: 'scripts/deploy/deploy-service.sh', ...section },
  };
  write('reeve.yaml', JSON.stringify({ actions }), 0o600);
  const env = {
    REEVE_CONFIG: join(root, 'reeve.yaml'),
    REEVE_STATE: join(root, 'state'),
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
  };
  const list = (directory: string): string[] => (existsSync(directory) ? readdirSync(directory).sort() : []);
  const start = (...words: string[]): Program => startProcess(inject('reeveBin'), words, env);
  const approved: ActionsNode['approved'] = (service, more) =>
    nameApprovals(anApprovedAction(service, more), basename(root));
  return {
    ...{ root, places, env, write, writeScript, start, approved },
    put: (service, more) => {
      const name = `redeploy-vps-${service}.json`;
      const path = join(places.inbox, name);
      const staged = join(dirname(places.inbox), 'staged-by-test');
      writeFileSync(staged, JSON.stringify(approved(service, more)));
      renameSync(staged, path);
      return path;
    },
    reeve: (...words) => start(...words).ended,
    ran: () => {
      const path = join(root, 'ran');
      const lines = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
      return lines.map((line) => line.replace(/^--force-recreate /, ''));
    },
    inbox: () => list(places.inbox),
    quarantine: () => list(places.quarantine),
    results: () =>
      list(places.outbox)
        .filter((name) => name.startsWith('evt-'))
        .map((name) => parseResultEvent(readFileSync(join(places.outbox, name)))),
    markers: () =>
      list(places.markers)
        .filter((name) => name.endsWith('.json'))
        .map((name) => {
          const { actionId, state } = JSON.parse(readFileSync(join(places.markers, name), 'utf8')) as Marker;
          return `${actionId} ${state.kind}${'outcome' in state ? ` ${state.outcome}` : ''}`;
        }),
  };
}
