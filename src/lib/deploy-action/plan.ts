// What is due: first what was left half-way, then what costs nothing, then the deploys. Everything is checked before anything runs,
// and nothing that has a marker is begun. Pure.
import type { Marker, ReadMarker } from '../actions/markers.ts';
import type { EntryName } from '../actions/open.ts';
import type { Action } from '../deploy-runner/action.ts';
import { actionIdOf, describeApproval } from '../deploy-runner/key.ts';
import type { Hold } from '../hold/holds.ts';
import { formatDuration } from '../time.ts';
import type { EntryFact, Facts } from './facts.ts';
import type { EndedMarker, PlannedStep, Step } from './steps.ts';

export function planDeploys(facts: Facts): PlannedStep[] {
  const settled = planSettle(facts);
  const entries = facts.entries.flatMap((fact) => planEntry(fact, facts));
  const isDeploy = ({ kind }: PlannedStep): boolean => kind === 'deploy';
  const quick = entries.filter((step) => !isDeploy(step));
  const deploys = entries.filter((step) => isDeploy(step) && !settled.some((one) => isBeside(step, one)));
  return [...settled, ...quick, ...planForeign(facts), ...deploys];
}

/** What was begun of a service may be at it still: the next deploy of it waits until that is settled. */
function isBeside(deploy: PlannedStep, settle: Step): boolean {
  return settle.kind === 'settle' && 'service' in deploy && settle.marker?.service === deploy.service;
}

/** Both what says of itself that it is open, and what an entry of the inbox leads to. */
function planSettle({ open, entries }: Facts): Step[] {
  const markers = new Map<string, ReadMarker>(open.map(({ key, marker }) => [key, marker]));
  const names = new Map<string, EntryName>();
  for (const fact of entries) {
    if (!('marker' in fact) || fact.marker === undefined) continue;
    const { key, name } = fact.entry;
    const isDone = typeof fact.marker === 'object' && fact.marker.state.kind === 'reported';
    if (!isDone) markers.set(key, fact.marker);
    names.set(key, name);
  }
  return [...markers].flatMap(([key, marker]) => planMarker(key, marker, names.get(key)) ?? []);
}

function planMarker(key: string, marker: ReadMarker, name: EntryName | undefined): Step | undefined {
  // Somebody is about to make it, or was killed before: then there is nothing to tell.
  if (marker === undefined) return undefined;
  const file = name === undefined ? {} : { name };
  if (marker === 'damaged') {
    return { kind: 'settle', key, ...file, reason: 'its marker is damaged: it may have been done' };
  }
  if (typeof marker === 'string') {
    const about = { key, actionId: actionIdOf(key), marker, ...file };
    return { kind: 'leave', ...about, reason: leftReasons[marker] };
  }
  switch (marker.state.kind) {
    case 'started':
      return { kind: 'settle', key, marker, ...file, reason: 'interrupted: the process that ran it is gone' };
    case 'ended':
      return { kind: 'report', key, marker: marker as EndedMarker, ...file, reason: 'its end was not told' };
    case 'reported':
      return { kind: 'close', key, reason: 'it has been told' };
  }
}

const leftReasons = {
  newer: 'its marker is of a later reeve, which alone may tell of it',
  unreadable: 'its marker cannot be read: it may have been done',
} as const;

function planEntry(fact: EntryFact, facts: Facts): PlannedStep[] {
  if (!('marker' in fact)) return [];
  const { entry, marker } = fact;
  const { name, key } = entry;
  const actionId = entry.kind === 'action' ? entry.action.actionId : entry.actionId;
  if (marker !== undefined) {
    // What is not settled yet is forgotten at the next look.
    if (typeof marker === 'string' || marker.state.kind !== 'reported') return [];
    return [{ kind: 'forget', key, actionId, name, reason: describeEarlier(marker) }];
  }
  if (entry.kind === 'refused') return [{ kind: 'refuse', name, key, actionId, reason: entry.reason }];
  return 'waitedMs' in fact ? [planAction(fact, facts)] : [];
}

type ActionFact = Extract<EntryFact, { waitedMs: number }>;

function planAction({ entry, hasComposeFile, waitedMs }: ActionFact, facts: Facts): PlannedStep {
  const { action, key, name } = entry;
  const { actionId, service, type: actionType } = action;
  const fault = findFault(action, facts, hasComposeFile) ?? findDelay(waitedMs, facts);
  if (fault === undefined && service !== undefined) {
    const { hold } = facts;
    if (hold !== undefined) return { kind: 'wait', key, actionId, reason: describeHold(hold) };
    return { kind: 'deploy', key, actionId, service, name, reason: describeApproval(action) };
  }
  const refused = { key, actionId, actionType, ...(service === undefined ? {} : { service }) };
  return { kind: 'refuse', name, ...refused, reason: fault ?? 'it names no service' };
}

/** Why this node does not do it; undefined where it does. */
function findFault(action: Action, { node, services }: Facts, hasComposeFile: boolean): string | undefined {
  const { type, node: wanted, service } = action;
  if (type !== 'redeploy') return `type is ${JSON.stringify(type)}, not "redeploy"`;
  if (wanted !== node) return `node is ${JSON.stringify(wanted)}, and this is ${JSON.stringify(node)}`;
  if (service === undefined) return 'it names no service';
  if ('problem' in services) return services.problem;
  if (!services.has(service)) return `service ${service} is not in hosts/${node}/services.yaml`;
  return hasComposeFile ? undefined : `there is no services/${service}/docker-compose.yml`;
}

/** Begun now, it might end when the control side has given it up. */
function findDelay(waitedMs: number, { roomMs, hold }: Facts): string | undefined {
  if (waitedMs <= roomMs) return undefined;
  const reason = `too late to begin: it has waited ${formatDuration(waitedMs)}`;
  return hold === undefined ? reason : `${reason}, and ${describeHold(hold)}`;
}

function describeHold({ until, by, reason }: Hold): string {
  return `this node is held until ${until}, by ${by}: ${reason}`;
}

function describeEarlier({ state }: Marker): string {
  const outcome = 'outcome' in state ? state.outcome : 'begun';
  const at = 'endedAt' in state ? state.endedAt : state.startedAt;
  return `this approval was handled before: ${outcome} at ${at}`;
}

function planForeign({ entries }: Facts): Step[] {
  const names = entries.flatMap(({ entry }) => (entry.kind === 'foreign' ? [entry.name] : []));
  if (names.length === 0) return [];
  const [first] = names;
  const others = names.length === 1 ? '' : `, and so are ${names.length - 1} more`;
  return [
    { kind: 'set-aside', names, reason: `${JSON.stringify(first?.text)} is no name of an action${others}` },
  ];
}
