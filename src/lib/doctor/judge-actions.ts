// The section `actions` as it stands on this machine: whether actions can come and results can leave, whether they can be performed, and
// what has been left lying; on a control host its tree and what its nodes owe it. Pure.
import type { ControlSurvey } from '../actions/control/survey.ts';
import type { NodeSurvey } from '../actions/survey.ts';
import type { PlaceKind } from '../rsync/place.ts';
import { formatDuration } from '../time.ts';
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';
import type { PathFacts } from './judge-files.ts';

export type PlaceFacts = {
  direction: 'pull' | 'push';
  place: string;
  kind: PlaceKind;
  /** Of a directory of this machine. */
  isThere?: boolean;
  /** Over ssh: those that would be offered. */
  keys: readonly PathFacts[];
};

export type ActionsFacts = {
  node: string;
  timeoutMs: number;
  places: readonly PlaceFacts[];
  /** Undefined where nothing goes over ssh. */
  knownHosts?: (PathFacts & { hosts: number }) | undefined;
  missingPrograms: readonly string[];
  checkout: { path: string; isThere: boolean };
  services: { path: string; problem: string | undefined };
  /** Undefined: the one that is shipped. */
  script?: { path: string; isThere: boolean; canRun: boolean };
  /** Why nothing can be run as the user that is named. */
  userProblem: string | undefined;
  survey: NodeSurvey;
  strays: { count: number; names: readonly string[] };
};

/** For the next run to come, and a link that is back to be noticed. */
const patienceMs = 10 * 60_000;
/** A run takes this long at most, with many deploys one after another. */
const longestRunMs = 60 * 60_000;

export function judgeActions(facts: ActionsFacts, now: Date): Finding[] {
  const { node, survey } = facts;
  const findings = [
    ...judgePrograms(facts),
    ...facts.places.flatMap(judgePlace),
    ...judgeKnownHosts(facts),
    ...judgeCheckout(facts),
    ...judgeOpen(facts, now),
    ...judgeWaiting(facts, now),
    ...judgeLeft(facts),
  ];
  const running = survey.open.filter(({ state }) => state === 'started').length;
  const fine = `node ${node}: ${survey.inbox.count} in the inbox, ${running} running, ${plural(survey.outbox.count, 'result')} to send`;
  return orOk(findings, ok(fine));
}

function judgePrograms({ missingPrograms }: ActionsFacts): Finding[] {
  if (missingPrograms.length === 0) return [];
  const fix = 'install the packages rsync, util-linux and openssh-client';
  return [failure(`not installed: ${missingPrograms.join(', ')}`, { fix })];
}

function judgePlace({ direction, place: where, kind, isThere, keys }: PlaceFacts): Finding[] {
  if (kind === 'local') {
    if (isThere === true) return [];
    return [failure(`actions.${direction} names a directory that is not there`, { where })];
  }
  if (kind === 'daemon') {
    const what = `actions.${direction} goes to an rsync daemon, which proves nothing of who it is`;
    return [warning(what, { where, fix: 'name a directory over ssh, as in docs/actions-install.md' })];
  }
  const present = keys.filter(({ mode }) => mode !== undefined);
  if (present.length === 0) {
    const missing = keys.map(({ path }) => path).join(' or ');
    const fix = 'make one, as in docs/actions-install.md';
    return [failure(`there is no key to ${direction} with`, { where: missing, fix })];
  }
  const open = present.filter(({ mode = 0 }) => (mode & 0o077) !== 0).map(({ path }) => path);
  if (open.length === 0) return [];
  const what = 'a private key can be read by others, so that ssh refuses it';
  return [failure(what, { where: listNames(open), fix: `chmod 600 ${open.join(' ')}` })];
}

function judgeKnownHosts({ knownHosts }: ActionsFacts): Finding[] {
  if (knownHosts === undefined) return [];
  const { path: where, hosts, mode = 0 } = knownHosts;
  if (hosts === 0) {
    const fix = "write the control host's public key there, as in docs/actions-install.md";
    return [failure('no control host is known: ssh talks to nobody', { where, fix })];
  }
  if ((mode & 0o022) === 0) return [];
  return [failure('others may say who the control host is', { where, fix: `chmod go-w ${where}` })];
}

function judgeCheckout({ checkout, services, script, userProblem }: ActionsFacts): Finding[] {
  const findings: Finding[] = [];
  if (!checkout.isThere) {
    const what = 'there is no checkout: every action is rejected';
    findings.push(
      failure(what, { where: checkout.path, fix: 'clone it there, or correct actions.checkout' }),
    );
  } else {
    findings.push(...judgeServices(services), ...judgeScript(script));
  }
  if (userProblem !== undefined) findings.push(failure(userProblem, { fix: 'correct actions.user' }));
  return findings;
}

function judgeServices({ path: where, problem }: ActionsFacts['services']): Finding[] {
  if (problem === undefined) return [];
  return [failure(`the node's services are not known: every action is rejected: ${problem}`, { where })];
}

function judgeScript(script: ActionsFacts['script']): Finding[] {
  if (script === undefined || (script.isThere && script.canRun)) return [];
  const { path: where, isThere } = script;
  if (!isThere) {
    const fix = 'correct actions.script, or leave it out for the script that reeve ships';
    return [failure('there is no such deploy script: every deploy fails', { where, fix })];
  }
  return [
    failure('the deploy script cannot be run: every deploy fails', { where, fix: `chmod +x ${where}` }),
  ];
}

/** What was begun and has not come to a result: whoever holds the lock is at it, or nobody is. */
function judgeOpen({ survey, timeoutMs }: ActionsFacts, now: Date): Finding[] {
  const { open } = survey;
  const isOlder = (at: string | undefined, ms: number): boolean =>
    !(now.getTime() - Date.parse(at ?? '') <= ms);
  const pick = (state: string, ms: number): string[] =>
    open.filter((one) => one.state === state && isOlder(one.at, ms)).map(({ actionId }) => actionId);
  const late = pick('started', timeoutMs + patienceMs);
  const untold = pick('ended', patienceMs);
  const damaged = open.filter(({ state }) => state === 'damaged').map(({ actionId }) => actionId);
  const findings: Finding[] = [];
  if (late.length > 0) {
    const what = `${plural(late.length, 'action')} running past its time, which is ${formatDuration(timeoutMs)}`;
    const fix = '`reeve deploy-action` settles what nobody is at; `reeve lock list` names who is';
    findings.push(failure(what, { where: listNames(late), fix }));
  }
  if (untold.length > 0) {
    const what = `${plural(untold.length, 'action')} ended, and no result in the outbox`;
    const fix = '`reeve deploy-action` puts it there, or says why it cannot';
    findings.push(failure(what, { where: listNames(untold), fix }));
  }
  if (damaged.length > 0) {
    const what = `the markers of ${plural(damaged.length, 'action')} cannot be read`;
    const fix = '`reeve deploy-action` reports their end as unknown; they are not run again';
    findings.push(warning(what, { where: listNames(damaged), fix }));
  }
  return findings;
}

function judgeWaiting({ survey: { inbox, outbox }, places }: ActionsFacts, now: Date): Finding[] {
  const findings: Finding[] = [];
  const waitedMs = now.getTime() - (inbox.sinceMs ?? Number.POSITIVE_INFINITY);
  if (waitedMs > longestRunMs) {
    const what = `${inbox.count} in the inbox, waiting for ${formatDuration(waitedMs)}`;
    const fix =
      '`reeve deploy-action` performs them; `systemctl status reeve-deploy-action.path` should be active';
    findings.push(failure(what, { fix }));
  }
  const unsentMs = now.getTime() - (outbox.sinceMs ?? Number.POSITIVE_INFINITY);
  if (unsentMs > patienceMs) {
    const what = `${plural(outbox.count, 'result')} not sent, the oldest for ${formatDuration(unsentMs)}`;
    const where = places.find(({ direction }) => direction === 'push')?.place ?? '';
    findings.push(failure(what, { where, fix: '`reeve rsync-pull` says why' }));
  }
  return findings;
}

function judgeLeft({ survey: { quarantine }, strays }: ActionsFacts): Finding[] {
  const findings: Finding[] = [];
  if (quarantine.length > 0) {
    const what = `${quarantine.length} refused, and kept in quarantine for people`;
    const fix = '`reeve history` says why; look at them and remove them';
    findings.push(warning(what, { where: listNames(quarantine.map(nameSafely)), fix }));
  }
  if (strays.count > 0) {
    const what = `${strays.count} at the source left alone: they are no actions`;
    const where = listNames(strays.names.map((name) => JSON.stringify(name)));
    findings.push(warning(what, { where, fix: 'remove them there, and ask who writes them' }));
  }
  return findings;
}

/** Whoever fills the inbox has chosen it. */
function nameSafely(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : JSON.stringify(name);
}

export type TreeDirectory = PathFacts & {
  /** Below the root, as people know it. */
  name: string;
  isDirectory: boolean;
  writable: boolean;
  device: number | undefined;
};

export type ControlFacts = {
  root: string;
  /** The root comes first. */
  directories: readonly TreeDirectory[];
  survey: ControlSurvey;
};

export function judgeControl({ root, directories, survey }: ControlFacts): Finding[] {
  const [top] = directories;
  if (top === undefined || !top.isDirectory) {
    const fix = 'make it, or correct actions.root';
    return [failure('there is no such directory, which actions.root names', { where: root, fix })];
  }
  const findings = [
    ...directories.flatMap((directory) => judgeDirectory(directory, top)),
    ...judgeLate(survey),
  ];
  const { pending, approved, running } = survey;
  const fine = `control host: ${pending} pending, ${approved} approved, ${running} running`;
  return orOk(findings, ok(fine, { where: root }));
}

/** Without events no redeploy has an end; the other directories are made when they are needed. */
function judgeDirectory(directory: TreeDirectory, top: TreeDirectory): Finding[] {
  const { path: where, name, mode, error, isDirectory, writable, device } = directory;
  if (error !== undefined) return [failure(`it cannot be looked at: ${error}`, { where })];
  const isEvents = name === '../events';
  if (mode === undefined) {
    if (!isEvents) return [];
    const fix = 'make it, with a directory for each node in it';
    return [warning('nodes have nowhere to report to: every redeploy will have failed', { where, fix })];
  }
  if (!isDirectory) return [failure('it is no directory', { where })];
  const findings: Finding[] = [];
  if ((mode & 0o002) !== 0) {
    const what = isEvents
      ? 'anybody on this machine may report for any node'
      : 'anybody on this machine may propose and approve there';
    findings.push(failure(what, { where, fix: `chmod o-w ${where}` }));
  }
  if (!isEvents && !writable)
    findings.push(failure('actions cannot be moved: it cannot be written', { where }));
  if (!isEvents && device !== top.device) {
    const what = 'it is another file system than the root, so that no action can be moved there';
    findings.push(failure(what, { where, fix: 'have all of actions on one file system' }));
  }
  return findings;
}

function judgeLate({ late, timeoutMs }: ControlSurvey): Finding[] {
  const old = late.filter(({ waitedMs }) => waitedMs > timeoutMs + patienceMs);
  if (old.length === 0) return [];
  const what = `${plural(old.length, 'action')} running past its time, which is ${formatDuration(timeoutMs)}`;
  const fix = '`reeve action settle` ends them; `systemctl status reeve-action.timer` should be active';
  return [failure(what, { where: listNames(old.map(({ id, node }) => `${id} on ${node}`)), fix })];
}
