// Harm to two machines with actions: processes that are killed in the act, transfers that are cut, power that fails, clocks that
// differ. What has really been hit is counted afterwards, from the journals.

import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fakeClock } from './faked-clock.ts';
import type { Host } from './host.ts';
import type { Random } from './random.ts';
import type { TwoHosts } from './two-hosts.ts';

export type Harm = 'kill deploy' | 'kill pull' | 'kill executor' | 'cut' | 'power node' | 'power control';

const often: readonly (readonly [Harm, number])[] = [
  ['kill deploy', 6],
  ['kill pull', 5],
  ['kill executor', 4],
  ['cut', 5],
  ['power node', 1],
  ['power control', 1],
];

/** All of them, in an order of chance. */
export function shuffleHarms(random: Random): Harm[] {
  const rest = often.flatMap(([harm, count]) => Array.from({ length: count }, () => harm));
  const shuffled: Harm[] = [];
  while (rest.length > 0) shuffled.push(...rest.splice(random.below(rest.length), 1));
  return shuffled;
}

export async function harm(hosts: TwoHosts, what: Harm, random: Random): Promise<void> {
  await sleep(random.below(1_500));
  switch (what) {
    case 'kill deploy':
      return await killInTheAct(hosts.node, 'reeve-deploy-action', random.below(700), 'pgrep -x tell.sh');
    case 'kill pull':
      return await killInTheAct(hosts.node, 'reeve-rsync-pull', random.below(500));
    case 'kill executor':
      return await killInTheAct(hosts.control, 'reeve-action', random.below(500));
    case 'cut':
      return await cutTransfer(hosts.control, random.below(4_000));
    case 'power node':
      return await hosts.losePower('node');
    case 'power control':
      return await hosts.losePower('control');
  }
}

/**
 * All that the unit has started, so long after it was seen at work: by a command that succeeds then. Nothing where it does not begin to
 * work for five seconds.
 */
async function killInTheAct(
  { run }: Host,
  unit: string,
  afterMs: number,
  works = '[ "$(systemctl show -P MainPID "$1")" != 0 ]',
): Promise<void> {
  const script = `
    looks=0
    until ${works}; do
      looks=$((looks + 1)); [ "$looks" -lt 100 ] || exit 0
      sleep 0.05
    done >/dev/null
    sleep "$2"
    systemctl kill --signal=KILL --kill-who=all "$1"
  `;
  await run(['sh', '-uc', script, 'sh', `${unit}.service`, `${afterMs / 1000}`]);
}

/** The cable is out while a transfer is under way, and its end on the control host is gone when the cable is back. */
async function cutTransfer({ run }: Host, forMs: number): Promise<void> {
  const script = `
    looks=0
    until pkill -STOP -x -u deploy rsync; do
      looks=$((looks + 1)); [ "$looks" -lt 500 ] || break
      sleep 0.02
    done
    ip link set link0 down
    sleep "$1"
    pkill -KILL -x -u deploy rsync
    ip link set link0 up
  `;
  await run(['sh', '-uc', script, 'sh', `${forMs / 1000}`]);
}

export type Hits = { deploys: number; pulls: number; executors: number; transfers: number };

export async function countHits({ node, control }: TwoHosts): Promise<Hits> {
  const count = async (host: Host, unit: string, how: string): Promise<number> => {
    const entries = await host.journal('-u', unit, '--grep', `Main process exited, ${how}`);
    return entries.length;
  };
  const killed = 'code=killed, status=9/KILL';
  return {
    deploys: await count(node, 'reeve-deploy-action', killed),
    pulls: await count(node, 'reeve-rsync-pull', killed),
    executors: await count(control, 'reeve-action', killed),
    // Unavailable: ssh or rsync was cut off.
    transfers: await count(node, 'reeve-rsync-pull', 'code=exited, status=69'),
  };
}

const units = { node: ['reeve-rsync-pull', 'reeve-deploy-action'], control: ['reeve-action'] };

/** The clock of all that reeve's units run from now on; undefined: the machine's own. The machine may be down for a while. */
export async function setClock(
  hosts: TwoHosts,
  which: 'node' | 'control',
  offset: string | undefined,
): Promise<void> {
  const host = hosts[which];
  const variables = Object.entries(fakeClock(offset ?? '')).map(([key, value]) => `"${key}=${value}"`);
  const text = offset === undefined ? '' : `[Service]\nEnvironment=${variables.join(' ')}\n`;
  await host.waitFor('the clock to be set', async () => {
    for (const unit of units[which]) {
      await host.write(`/etc/systemd/system/${unit}.service.d/60-clock.conf`, text);
    }
    await host.output(['systemctl', 'daemon-reload']);
    return true;
  });
}

const finals = ['completed', 'failed', 'rejected', 'cancelled'];

/** Which action lies in which final state. Undefined while the machine is down. */
export function readFinals({ control }: TwoHosts): Map<string, string> | undefined {
  const tree = control.outside('/opt/homelab/actions');
  try {
    const states = readdirSync(tree).filter((state) => finals.includes(state));
    const names = states.flatMap((state) =>
      readdirSync(`${tree}/${state}`)
        .filter((name) => /^[a-z].*\.json$/.test(name))
        .map((name) => [name.replace(/\.json$/, ''), state] as const),
    );
    return new Map(names);
  } catch {
    return undefined;
  }
}

/** Looks all the time. The end of it gives what has left a final state, or changed it: nothing, if all is well. */
export function watchFinals(hosts: TwoHosts): { stop(): Promise<string[]> } {
  const known = new Map<string, string>();
  const left: string[] = [];
  const stopping = new AbortController();
  const look = (): void => {
    const now = readFinals(hosts);
    if (now === undefined) return;
    for (const [id, state] of known) {
      if (now.get(id) !== state) left.push(`${id}: ${state}, then ${now.get(id) ?? 'none'}`);
    }
    for (const [id, state] of now) known.set(id, state);
  };
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      look();
      await sleep(200);
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await watching;
      look();
      return left;
    },
  };
}
