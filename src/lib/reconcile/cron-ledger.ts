// Changes to cron.json: last fires of schedules, each on disk before what it announces is done.
import type { CronDocument } from './documents.ts';
import type { Session } from './session.ts';

/** Throws if it cannot be written: then nothing has fired, and memory says so too. */
export async function recordFire(
  session: Session,
  key: string,
  { fireMs, schedule }: { fireMs: number; schedule: string },
): Promise<void> {
  const before = session.cron.value;
  try {
    await session.cron.update((document) => withFire(document, key, { fireMs, schedule }));
  } catch (error) {
    const earlier = { fireMs: before.fires[key], schedule: before.schedules?.[key] };
    // Whether this gets to the disk is no matter: what is there is the same.
    await session.cron.update((document) => withFire(document, key, earlier)).catch(() => {});
    throw error;
  }
}

export async function forgetFire(session: Session, key: string): Promise<void> {
  const nothing = { fireMs: undefined, schedule: undefined };
  await session.cron.update((document) => withFire(document, key, nothing));
}

function withFire(
  document: CronDocument,
  key: string,
  { fireMs, schedule }: { fireMs: number | undefined; schedule: string | undefined },
): CronDocument {
  return {
    fires: withEntry(document.fires, key, fireMs),
    schedules: withEntry(document.schedules ?? {}, key, schedule),
  };
}

function withEntry<T>(
  entries: Readonly<Record<string, T>>,
  key: string,
  value: T | undefined,
): Readonly<Record<string, T>> {
  const { [key]: _, ...others } = entries;
  return value === undefined ? others : { ...others, [key]: value };
}
