// Which services are to be backed up now, and under which name. Pure.
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import { type Hold, holdFor } from '../hold/holds.ts';
import { decideFire, nextFire, parseSchedule } from '../schedule/schedule.ts';
import type { FoundDatabase } from './engine.ts';
import { type BackupsDocument, backupAnchor } from './state.ts';

export type BackupFacts = {
  now: Date;
  /** Those that could be read; of the others nothing is forgotten. */
  services: readonly DesiredService[];
  anchors: BackupsDocument['anchors'];
  /** Last fires as launch-pad's agent left them, for what has no anchor here. */
  imported: Readonly<Record<string, number>>;
  holds: readonly Hold[];
};

export type BackupOptions = {
  /** `PROJECT/SERVICE` */
  only?: string;
  /** A person wants a set of this moment, whatever the schedule says. */
  isNow: boolean;
};

export type BackupTurn = {
  key: string;
  service: DesiredService;
  /** What the set is named after. */
  fire: Date;
  /** It is the schedule's own fire, which moves on by it. */
  isScheduled: boolean;
};

export type BackupPlan = {
  due: readonly BackupTurn[];
  /** Anchors that become now, and why. */
  anchored: readonly { key: string; why: string }[];
  deferred: readonly { key: string; reason: string }[];
  faults: readonly { key: string; error: string }[];
  /** When each of the others is due. */
  waiting: readonly { key: string; next: Date | undefined }[];
};

type Step =
  | { kind: 'due'; turn: BackupTurn }
  | { kind: 'anchored'; key: string; why: string }
  | { kind: 'deferred'; key: string; reason: string }
  | { kind: 'fault'; key: string; error: string }
  | { kind: 'waiting'; key: string; next: Date | undefined };

export function planBackups(facts: BackupFacts, { only, isNow }: BackupOptions): BackupPlan {
  const steps = facts.services
    .filter((service) => service.backup !== undefined)
    .filter((service) => only === undefined || serviceKey(service) === only)
    .map((service) => (isNow ? turnNow(facts, service) : decide(facts, service)));
  const ofKind = <Kind extends Step['kind']>(kind: Kind) =>
    steps.filter((step): step is Extract<Step, { kind: Kind }> => step.kind === kind);
  return {
    due: ofKind('due').map(({ turn }) => turn),
    anchored: ofKind('anchored').map(({ key, why }) => ({ key, why })),
    deferred: ofKind('deferred').map(({ key, reason }) => ({ key, reason })),
    faults: ofKind('fault').map(({ key, error }) => ({ key, error })),
    waiting: ofKind('waiting').map(({ key, next }) => ({ key, next })),
  };
}

function turnNow({ now }: BackupFacts, service: DesiredService): Step {
  const fire = new Date(Math.floor(now.getTime() / 1000) * 1000);
  return { kind: 'due', turn: { key: serviceKey(service), service, fire, isScheduled: false } };
}

function decide(facts: BackupFacts, service: DesiredService): Step {
  const { now } = facts;
  const key = serviceKey(service);
  const { schedule: text = '', timeZone } = service.backup ?? {};
  const parsed = parseSchedule(text);
  if ('fault' in parsed) {
    return {
      kind: 'fault',
      key,
      error: `cannot follow backup.schedule ${JSON.stringify(text)}: ${parsed.fault}`,
    };
  }
  const decision = decideFire({ schedule: parsed.schedule, timeZone, anchor: anchorOf(facts, key), now });
  switch (decision.kind) {
    case 'seed':
      return { kind: 'anchored', key, why: 'its schedule begins now' };
    case 'clamp':
      return { kind: 'anchored', key, why: 'its last backup lay in the future: the schedule begins anew' };
    case 'wait':
      return { kind: 'waiting', key, next: decision.next };
    case 'due': {
      const hold = holdFor(facts.holds, key, now);
      if (hold !== undefined) return { kind: 'deferred', key, reason: describeHold(hold) };
      return { kind: 'due', turn: { key, service, fire: decision.fire, isScheduled: true } };
    }
  }
}

function anchorOf({ anchors, imported }: BackupFacts, key: string): Date | undefined {
  const name = backupAnchor(key);
  const anchor = anchors[name] ?? imported[name];
  return anchor === undefined ? undefined : new Date(anchor);
}

/** When a service is backed up next; undefined where its schedule is none or names no day. */
export function nextBackup({ backup }: DesiredService, after: Date): Date | undefined {
  const parsed = parseSchedule(backup?.schedule ?? '');
  return 'fault' in parsed ? undefined : nextFire(parsed.schedule, after, backup?.timeZone);
}

export type DatabaseChoice = {
  /** Small ones first: what ends a long dump must not take them along. */
  dumped: readonly { name: string; sizeBytes: number }[];
  skipped: readonly { database: string; reason: string }[];
  failures: readonly { database: string; error: string }[];
};

/** `wanted`: those that the service names; none: all but the server's own. */
export function chooseDatabases(found: readonly FoundDatabase[], wanted: readonly string[]): DatabaseChoice {
  const choice = wanted.length > 0 ? chooseWanted(found, wanted) : chooseAll(found);
  return { ...choice, dumped: choice.dumped.toSorted((a, b) => a.sizeBytes - b.sizeBytes) };
}

function chooseWanted(found: readonly FoundDatabase[], wanted: readonly string[]): DatabaseChoice {
  const known = new Map(found.map((database) => [database.name, database]));
  const failures: { database: string; error: string }[] = [];
  const dumped: { name: string; sizeBytes: number }[] = [];
  for (const name of new Set(wanted)) {
    const database = known.get(name);
    const error = database === undefined ? 'there is no such database' : database.skip;
    if (error === undefined) dumped.push({ name, sizeBytes: database?.sizeBytes ?? 0 });
    else failures.push({ database: name, error });
  }
  const skipped = found
    .filter(({ name }) => name === undefined || !wanted.includes(name))
    .map(({ shown, skip }) => ({ database: shown, reason: skip ?? 'database.databases does not name it' }));
  return { dumped, skipped, failures };
}

function chooseAll(found: readonly FoundDatabase[]): DatabaseChoice {
  const skipped: { database: string; reason: string }[] = [];
  const failures: { database: string; error: string }[] = [];
  const dumped: { name: string; sizeBytes: number }[] = [];
  for (const { name, shown, sizeBytes, skip, isOwn } of found) {
    const reason =
      skip ?? (isOwn ? "it is the server's own: name it in database.databases to have it" : undefined);
    if (reason !== undefined) skipped.push({ database: shown, reason });
    else if (name === undefined)
      failures.push({ database: shown, error: 'its name is no UTF-8, so that no program can be given it' });
    else dumped.push({ name, sizeBytes });
  }
  return { dumped, skipped, failures };
}

export function describeHold({ reason }: Hold): string {
  return `it is held: ${reason}`;
}
