// What a look at a set makes of the documents that tell how far dumps are proven. Pure.
import type { EvidenceLevel } from '../evidence.ts';
import type { BackupSet, Dump, Inventory } from '../inventory.ts';
import type { Evidence } from '../manifest.ts';
import type { BackupsDocument, DatabaseBackups } from '../state.ts';
import type { Finding, SetFindings } from './set.ts';

/** The set of this stamp, else the newest that has said what it is. */
export function chooseSet({ sets }: Inventory, stamp: string | undefined): BackupSet | undefined {
  if (stamp !== undefined) return sets.find((set) => set.stamp === stamp);
  return sets.findLast(({ manifest, fault }) => manifest !== undefined || fault !== undefined);
}

/** Of what could not be looked at the earlier evidence stays. */
export function buildEvidence(
  { globals, databases }: SetFindings,
  { dumps, checkedAt }: { dumps: readonly Dump[]; checkedAt: Date },
): Evidence {
  const about = globals === undefined ? undefined : proofOf(globals);
  return {
    version: 1,
    checkedAt: checkedAt.toISOString(),
    ...(about === undefined ? {} : { globals: about }),
    databases: databases.flatMap(({ database, finding }) => {
      const proof = proofOf(finding) ?? earlierProof(dumps.find((dump) => dump.database === database));
      return proof === undefined ? [] : [{ database, ...proof }];
    }),
  };
}

type Proof = { level: Exclude<EvidenceLevel, 'uploaded'>; error?: string };

function proofOf(finding: Finding): Proof | undefined {
  if (finding.kind === 'unknown') return undefined;
  const { level, error } = finding;
  return { level, ...(error === undefined ? {} : { error }) };
}

function earlierProof(dump: Dump | undefined): Proof | undefined {
  if (dump === undefined || dump.level === 'uploaded') return undefined;
  return { level: dump.level, ...(dump.fault === undefined ? {} : { error: dump.fault }) };
}

/** `at`: the set's fire. A set before the last good dump says nothing of that one but when one was last restored. */
export function recordFindings(
  document: BackupsDocument,
  key: string,
  { at, checkedAt, databases }: Pick<SetFindings, 'databases'> & { at: Date; checkedAt: Date },
): BackupsDocument {
  const service = document.services[key];
  if (service === undefined) return document;
  const records = new Map(Object.entries(service.databases));
  for (const { database, finding } of databases) {
    const known = records.get(database);
    if (known !== undefined) records.set(database, recordFinding(known, finding, { at, checkedAt }));
  }
  return {
    ...document,
    services: { ...document.services, [key]: { ...service, databases: Object.fromEntries(records) } },
  };
}

function recordFinding(
  known: DatabaseBackups,
  finding: Finding,
  { at, checkedAt }: { at: Date; checkedAt: Date },
): DatabaseBackups {
  if (finding.kind === 'unknown') return known;
  const isLast = known.lastSuccessAt === at.toISOString();
  return {
    ...known,
    level: isLast ? finding.level : known.level,
    restoredAt: finding.restored === undefined ? known.restoredAt : checkedAt.toISOString(),
  };
}
