// `reeve lock list`: who holds what. Takes no lock.
import { describeHolder } from '../lib/lock/holder.ts';
import { listLocks } from '../lib/lock/list-locks.ts';
import type { Outcome } from '../lib/outcome.ts';
import type { CommandInput } from './command.ts';

export async function run({ base }: CommandInput): Promise<Outcome> {
  const locks = await listLocks(base.paths.locksDir);
  const now = base.clock.now();
  const lines = locks.map(({ name, held, holder }) =>
    held ? `${name}: held by ${describeHolder(holder, now)}` : `${name}: free`,
  );
  return {
    outcome: 'done',
    text: lines.length === 0 ? ['no lock has been taken yet'] : lines,
    data: { locks },
  };
}
