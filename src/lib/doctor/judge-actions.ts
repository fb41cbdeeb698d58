// The section `actions` as it stands on this machine: whether actions can come and results can leave, whether they can be performed, and
// what has been left lying. Pure.
import type { NodeSurvey, OpenAction } from '../actions/survey.ts';
import type { PlaceKind } from '../rsync/place.ts';
import { isOlderVersion, oldestRsync, safeRsync } from '../rsync/version.ts';
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
  /** Undefined where it does not tell. */
  rsyncVersion: string | undefined;
  checkout: { path: string; isThere: boolean };
  /** `unnamable`: those whose redeploys could have no id. */
  services: { path: string; problem: string | undefined; unnamable: readonly string[] };
  /** Undefined: the one that is shipped. */
  script?: { path: string; isThere: boolean; canRun: boolean };
  /** Why nothing can be run as the user that is named. */
  userProblem: string | undefined;
  survey: NodeSurvey | { problem: string };
  strays: { count: number; names: readonly string[] } | { problem: string };
};

/** For the next run to come, and a link that is back to be noticed. */
const patienceMs = 10 * 60_000;
/** A run takes this long at most, with many deploys one after another. */
const longestRunMs = 60 * 60_000;
/** A run clears it away after a day. */
const announcedMs = 2 * 24 * 60 * 60_000;

const idRule = 'lower-case letters, digits and single "-", 64 characters at most in all';

export function judgeActions(facts: ActionsFacts, now: Date): Finding[] {
  const { node, survey } = facts;
  const findings = [
    ...judgePrograms(facts),
    ...facts.places.flatMap(judgePlace),
    ...judgeKnownHosts(facts),
    ...judgeCheckout(facts),
    ...judgeSurvey(facts, now),
    ...judgeStrays(facts),
  ];
  if ('problem' in survey) return findings;
  const running = survey.open.filter(({ state }) => state === 'started').length;
  const fine = `node ${node}: ${survey.inbox.count} in the inbox, ${running} running, ${plural(survey.outbox.count, 'result')} to send`;
  return orOk(findings, ok(fine));
}

function judgeSurvey({ survey, timeoutMs, places }: ActionsFacts, now: Date): Finding[] {
  if ('problem' in survey) return [failure(`what waits here cannot be looked at: ${survey.problem}`)];
  const push = places.find(({ direction }) => direction === 'push')?.place ?? '';
  return [
    ...judgeOpen(survey, timeoutMs, now),
    ...judgeWaiting(survey, push, now),
    ...judgeQuarantine(survey),
  ];
}

function judgePrograms({ missingPrograms, rsyncVersion }: ActionsFacts): Finding[] {
  if (missingPrograms.length > 0) {
    const fix = 'install the packages rsync, util-linux and openssh-client';
    return [failure(`not installed: ${missingPrograms.join(', ')}`, { fix })];
  }
  if (rsyncVersion === undefined) return [];
  if (isOlderVersion(rsyncVersion, oldestRsync)) {
    const what = `rsync ${rsyncVersion} is too old: it sends no results`;
    return [failure(what, { fix: `install ${safeRsync} or newer, at least ${oldestRsync}` })];
  }
  if (!isOlderVersion(rsyncVersion, safeRsync)) return [];
  const what = `rsync ${rsyncVersion} may let the control host write outside of what is pulled`;
  const fix = `install ${safeRsync} or newer, unless the package has CVE-2024-12087 and 12088 mended`;
  return [warning(what, { fix })];
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

function judgeServices({ path: where, problem, unnamable }: ActionsFacts['services']): Finding[] {
  if (problem === undefined) {
    if (unnamable.length === 0) return [];
    const whose = unnamable.length === 1 ? 'its name fits' : 'their names fit';
    const what = `${plural(unnamable.length, 'service')} can have no redeploy: ${whose} into no id`;
    const fix = `ids are redeploy-NODE-SERVICE: ${idRule}`;
    return [warning(what, { where: listNames(unnamable.map(nameSafely)), fix })];
  }
  const fix = 'have the services of this node listed there, or correct actions.node';
  return [failure(`the node's services are not known: every action is rejected: ${problem}`, { where, fix })];
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
function judgeOpen({ open }: NodeSurvey, timeoutMs: number, now: Date): Finding[] {
  const pick = (wanted: OpenAction['state'], ms?: number): string[] =>
    open
      .filter(({ state, at }) => state === wanted && (ms === undefined || isOlder(at, ms, now)))
      .map(({ actionId }) => actionId);
  const tell = (found: readonly string[], finding: (where: string, count: string) => Finding): Finding[] =>
    found.length === 0 ? [] : [finding(listNames(found), plural(found.length, 'action'))];
  return [
    ...tell(pick('started', timeoutMs + patienceMs), (where, count) => {
      const fix = '`reeve deploy-action` settles what nobody is at; `reeve lock list` names who is';
      return failure(`${count} running past its time, which is ${formatDuration(timeoutMs)}`, { where, fix });
    }),
    ...tell(pick('lost'), (where, count) => {
      const judge = pick('lost', patienceMs).length > 0 ? failure : warning;
      const fix = '`reeve deploy-action` reports their end as unknown; they are not run again';
      return judge(`${count} begun, and the process is gone`, { where, fix });
    }),
    ...tell(pick('ended', patienceMs), (where, count) => {
      const fix = '`reeve deploy-action` puts it there, or says why it cannot';
      return failure(`${count} ended, and no result in the outbox`, { where, fix });
    }),
    ...tell(pick('damaged'), (where, count) => {
      const fix = '`reeve deploy-action` reports their end as unknown; they are not run again';
      return warning(`the markers of ${count} are damaged`, { where, fix });
    }),
    ...tell(pick('unreadable'), (where, count) => {
      const fix = 'look at the disk and at processed-deploy-actions; they are not run meanwhile';
      return failure(`the markers of ${count} cannot be read`, { where, fix });
    }),
    ...tell(pick('newer'), (where, count) => {
      const fix = 'go back to that version, which tells of them; this one leaves them alone';
      return warning(`the markers of ${count} are of a later reeve`, { where, fix });
    }),
    ...tell(pick('announced', announcedMs), (where, count) => {
      const fix = '`reeve deploy-action` clears that away, unless its file waits in the inbox';
      return warning(`the markers of ${count} were announced and never made`, { where, fix });
    }),
  ];
}

/** What has no time, or one to come, was dated by nobody or by a wrong clock: how old it is nobody knows. */
function isOlder(at: string | undefined, ms: number, now: Date): boolean {
  const ageMs = now.getTime() - Date.parse(at ?? '');
  return !(ageMs <= ms && ageMs >= -patienceMs);
}

function judgeWaiting({ inbox, outbox }: NodeSurvey, push: string, now: Date): Finding[] {
  const findings: Finding[] = [];
  const inboxAge = describeAge(inbox.sinceMs, longestRunMs, now);
  if (inboxAge !== undefined) {
    const fix =
      '`reeve deploy-action` performs them; `systemctl status reeve-deploy-action.path` should be active';
    findings.push(failure(`${inbox.count} in the inbox, waiting ${inboxAge}`, { fix }));
  }
  const outboxAge = describeAge(outbox.sinceMs, patienceMs, now);
  if (outboxAge !== undefined) {
    const what = `${plural(outbox.count, 'result')} not sent, the oldest ${outboxAge}`;
    findings.push(failure(what, { where: push, fix: '`reeve rsync-pull` says why' }));
  }
  return findings;
}

/** Undefined within its time. */
function describeAge(sinceMs: number | undefined, ms: number, now: Date): string | undefined {
  if (sinceMs === undefined) return undefined;
  const ageMs = now.getTime() - sinceMs;
  if (ageMs < -patienceMs) return `since ${new Date(sinceMs).toISOString()}, which is to come`;
  return ageMs > ms ? `for ${formatDuration(ageMs)}` : undefined;
}

function judgeQuarantine({ quarantine }: NodeSurvey): Finding[] {
  if (quarantine.length === 0) return [];
  const what = `${quarantine.length} refused, and kept in quarantine for people`;
  const fix = '`reeve history` says why; look at them and remove them';
  return [warning(what, { where: listNames(quarantine.map(nameSafely)), fix })];
}

function judgeStrays({ strays }: ActionsFacts): Finding[] {
  if ('problem' in strays) {
    return [failure(`what was left at the source is not known: ${strays.problem}`)];
  }
  if (strays.count === 0) return [];
  const what = `${strays.count} at the source left alone: they are no actions`;
  const where = listNames(strays.names.map((name) => JSON.stringify(name)));
  return [warning(what, { where, fix: 'remove them there, and ask who writes them' })];
}

/** Whoever fills the inbox has chosen it. */
function nameSafely(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : JSON.stringify(name);
}
