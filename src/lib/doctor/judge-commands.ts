// The section `commands` as it stands on this machine: who may read the token, whether the control plane is there and knows us,
// whether commands can run, and the proxy. Pure.
import { formatDuration } from '../time.ts';
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';
import type { PathFacts } from './judge-files.ts';

export type CommandsFacts = {
  /** Undefined, with `server`, where no control plane is named. */
  origin: string | undefined;
  server: { reachable: true; status: number } | { reachable: false; why: string } | undefined;
  heartbeatIntervalMs: number;
  /** Undefined where none was ever sent. */
  beats: { lastOkAt?: string; lastError?: string } | undefined;
  tokenFile: PathFacts;
  /** Of commands: what they are given and what they print may be secret. */
  files: readonly PathFacts[];
  /** Why they cannot run as the user that is named. */
  userProblem: string | undefined;
  survey: {
    waiting: number;
    running: readonly { jobId: string; startedAt: string }[];
    lost: readonly string[];
    damaged: readonly string[];
  };
  hasSystemd: boolean;
};

/** A control plane takes a machine for online for so many intervals. */
const onlineIntervals = 3;
/** A command has half an hour, and moments to end. */
const longestMs = 31 * 60_000;

export function judgeCommands(facts: CommandsFacts, now: Date): Finding[] {
  const { origin, userProblem, survey } = facts;
  const findings = [
    ...judgeFiles(facts),
    ...judgeControlPlane(facts, now),
    ...(userProblem === undefined ? [] : [failure(userProblem, { fix: 'correct commands.user' })]),
    ...judgeSurvey(facts, now),
  ];
  const who = origin === undefined ? 'no control plane is told of this machine' : `${origin} answers`;
  const waiting = survey.waiting === 0 ? '' : `, ${survey.waiting} waiting`;
  return orOk(findings, ok(`${who}, ${plural(survey.running.length, 'command')} running${waiting}`));
}

function judgeFiles({ tokenFile, files }: CommandsFacts): Finding[] {
  const findings: Finding[] = [];
  const { path: where, mode = 0 } = tokenFile;
  if ((mode & 0o077) !== 0) {
    const what = 'the token can be read by others, and is good for any command';
    findings.push(failure(what, { where, fix: `chmod 600 ${where}` }));
  }
  const open = files.filter((file) => ((file.mode ?? 0) & 0o077) !== 0);
  if (open.length > 0) {
    const names = listNames(open.map(({ path }) => path));
    const fix = open.length > 5 ? 'chmod go-rwx' : `chmod go-rwx ${open.map(({ path }) => path).join(' ')}`;
    const what = `${plural(open.length, 'file')} of commands can be read by others, with what may be secret`;
    findings.push(failure(what, { where: names, fix }));
  }
  return findings;
}

/** What cannot be reached now is told once, and not by its last heartbeat as well. */
function judgeControlPlane(facts: CommandsFacts, now: Date): Finding[] {
  const { origin: where = '', server, beats, heartbeatIntervalMs, hasSystemd } = facts;
  if (server === undefined) return [];
  if (!server.reachable) {
    const fix =
      'correct commands.central_base_url, or see to the network, the name server or the control plane';
    return [failure(server.why, { fix })];
  }
  if (server.status === 401 || server.status === 403) {
    const fix = "write the machine's agent token there into commands.token";
    return [failure(`the control plane does not know our token (${server.status})`, { where, fix })];
  }
  const findings: Finding[] = [];
  if (beats?.lastError !== undefined) findings.push(failure(beats.lastError, { where }));
  if (beats?.lastOkAt !== undefined) {
    const silentMs = now.getTime() - Date.parse(beats.lastOkAt);
    const allowedMs = onlineIntervals * heartbeatIntervalMs;
    if (silentMs > allowedMs) {
      const since = `told last ${formatDuration(silentMs)} ago, and ${formatDuration(allowedMs)} are allowed`;
      const fix = hasSystemd
        ? '`systemctl list-timers reeve-heartbeat.timer` tells when it is told next'
        : 'run `reeve heartbeat` each commands.heartbeat_interval';
      findings.push(failure(`this machine is taken for offline: ${since}`, { where, fix }));
    }
  }
  return findings;
}

function judgeSurvey({ survey, hasSystemd }: CommandsFacts, now: Date): Finding[] {
  const { running, lost, damaged } = survey;
  const old = running.filter(({ startedAt }) => !(now.getTime() - Date.parse(startedAt) <= longestMs));
  const findings: Finding[] = [];
  if (old.length > 0) {
    const where = listNames(old.map(({ jobId }) => jobId));
    const fix = `\`${hasSystemd ? 'systemctl status "reeve-command@*"' : 'ps -ef'}\` tells what they do`;
    findings.push(
      warning(`${plural(old.length, 'command')} running for longer than half an hour`, { where, fix }),
    );
  }
  if (lost.length > 0) {
    const what = `${plural(lost.length, 'command')} whose process is gone`;
    const why = hasSystemd ? '`journalctl -u "reeve-command@*"` tells why; ' : '';
    const fix = `${why}whoever asks for one is told that it has failed`;
    findings.push(warning(what, { where: listNames(lost), fix }));
  }
  if (damaged.length > 0) {
    const what = `the records of ${plural(damaged.length, 'command')} cannot be read`;
    const fix =
      'look what happened (disk, power): whoever asks for one is told that it has failed, and it goes after commands.job_retention';
    findings.push(warning(what, { where: listNames(damaged), fix }));
  }
  return findings;
}

export type ProxyFacts = {
  isInstalled: boolean;
  /** Where it is asked. */
  socket: string;
  /** Why its tunnels cannot be counted. */
  error?: string;
  /** It runs, and does not answer. */
  isHung?: boolean;
  hasSystemd: boolean;
  tunnels?: number;
  workers?: number;
  isDraining: boolean;
  /** What a worker has otherwise than the registry, as `a had 9 instead of 20001`. */
  differences?: readonly string[];
  /** Why the instances' address is not known. */
  hostProblem: string | undefined;
};

export function judgeProxy(facts: ProxyFacts): Finding[] {
  const { isInstalled, socket: where, error, tunnels = 0, workers = 1, isDraining, hostProblem } = facts;
  const { differences = [] } = facts;
  if (!isInstalled) {
    const fix = `apt-get install haproxy, then ${facts.hasSystemd ? 'systemctl start reeve-proxy.service' : startAlone}`;
    return [failure('HAProxy is not installed, and leads to instances', { fix })];
  }
  const findings: Finding[] = [];
  if (hostProblem !== undefined) {
    findings.push(failure(hostProblem, { fix: 'correct commands.proxy_backend_host, or the name server' }));
  }
  if (error !== undefined) {
    findings.push(failure(error, { where, fix: findProxyFix(facts) }));
  } else if (isDraining) {
    const fix = 'reeve proxy drain --end, unless the proxy is just being stopped';
    findings.push(warning('new tunnels are refused (drain)', { where, fix }));
  }
  if (differences.length > 0) {
    const fix = 'reeve proxy sync; each heartbeat does it as well';
    findings.push(failure(`HAProxy differs from the registry: ${listNames(differences)}`, { where, fix }));
  }
  const old = workers > 1 ? `, in ${workers} workers` : '';
  return orOk(findings, ok(`HAProxy answers, ${plural(tunnels, 'tunnel')}${old}`, { where }));
}

/** Where systemd does not run. */
const startAlone = 'start it as docs/proxy.md tells for a machine without systemd';

function findProxyFix({ isHung = false, hasSystemd }: ProxyFacts): string {
  if (!hasSystemd) return isHung ? `end HAProxy, and ${startAlone}` : startAlone;
  return isHung
    ? 'systemctl restart reeve-proxy.service'
    : 'systemctl start reeve-proxy.service; journalctl -u reeve-proxy -n 20 tells why it does not run';
}
