// What a tick has to do with backups: it reads what is known of them for its status, and wakes the concern that makes them.
import { planBackups } from '../backup/plan.ts';
import { type BackupsDocument, backupsDocument, backupsPath, emptyBackups } from '../backup/state.ts';
import { serviceKey } from '../cluster/wire.ts';
import { describeError } from '../errors.ts';
import { writeWake } from '../publish/wake.ts';
import { readDocument } from '../state/document.ts';
import type { Facts } from './facts.ts';
import type { Session } from './session.ts';

/** Nothing is read where no service has backups. A damaged file is its owner's to repair. */
export async function readBackups({ ctx, desired }: Session): Promise<BackupsDocument> {
  const isAny = desired.kind === 'document' && desired.services.some(({ backup }) => backup !== undefined);
  if (!isAny) return emptyBackups;
  const how = { now: ctx.clock.now(), log: ctx.log, repair: false };
  const read = await readDocument(backupsPath(ctx.paths), backupsDocument, how);
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value : emptyBackups;
}

/**
 * Once for what is due, since a run may take hours and is recorded at its end. Only for databases that run: others would be put
 * off. `woken` is what the last call gave.
 */
export async function wakeBackups({ ctx }: Session, facts: Facts, woken: string): Promise<string> {
  const { desired, now, backups, cron, holds } = facts;
  if (desired.kind === 'none') return woken;
  const { services } = desired;
  const plan = planBackups(
    { now, services, anchors: backups.anchors, imported: cron.fires, holds },
    { isNow: false },
  );
  const running = new Set(facts.replicas.filter(({ state }) => state === 'running').map(serviceKey));
  const due = [
    ...plan.due.filter(({ key }) => running.has(key)).map(({ key, fire }) => `${key} ${fire.toISOString()}`),
    ...plan.anchored.map(({ key }) => key),
  ].join('\n');
  if (due === '' || due === woken) return due;
  await writeWake(ctx.paths, 'backup').catch((error: unknown) => {
    ctx.log.debug(`the backup is not woken: ${describeError(error)}`);
  });
  return due;
}
