// The section `jobs` as it stands on this machine: who we are for the server, whether it is there, and what is still open. Pure.
import { formatDuration } from '../time.ts';
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';

export type JobsFacts = {
  serverUrl: string;
  tokenFile: string;
  /** Undefined where there is no file. */
  tokenMode: number | undefined;
  /** Why certificate, key and token are of no use together; undefined where they are, and where TLS is off. */
  identityProblem: string | undefined;
  server:
    | { reachable: true; dateHeader: Date | undefined; status: number }
    | { reachable: false; why: string };
  missingPrograms: readonly string[];
  /** Open jobs, and since when; `trouble` is why the records of one cannot be read. */
  open: readonly {
    key: string;
    claimedAt: string | undefined;
    hasCompletion: boolean;
    lastError?: string;
    trouble?: string;
  }[];
};

const dayMs = 24 * 60 * 60_000;
/** Tokens and certificates have instants in them: a minute is what people see, five are what breaks. */
const skewMs = 60_000;
const farSkewMs = 5 * 60_000;

export function judgeJobs(facts: JobsFacts, now: Date): Finding[] {
  const { missingPrograms } = facts;
  const findings = [
    ...judgeIdentity(facts),
    ...judgeServer(facts, now),
    ...(missingPrograms.length === 0
      ? []
      : [
          failure(`jobs need ${listNames(missingPrograms)}`, {
            fix: `apt-get install ${missingPrograms.join(' ')}`,
          }),
        ]),
    ...judgeOpenJobs(facts, now),
  ];
  return orOk(findings, ok(`${facts.serverUrl} answers, ${plural(facts.open.length, 'job')} open`));
}

function judgeIdentity({ tokenFile, tokenMode, identityProblem }: JobsFacts): Finding[] {
  const findings: Finding[] = [];
  if (tokenMode === undefined) {
    const fix = 'issue a bootstrap token and put it in place';
    findings.push(failure('there is no token for the server', { where: tokenFile, fix }));
  } else if ((tokenMode & 0o077) !== 0) {
    const fix = `chmod 600 ${tokenFile}`;
    findings.push(failure('the token can be read by others', { where: tokenFile, fix }));
  }
  if (tokenMode !== undefined && identityProblem !== undefined) findings.push(failure(identityProblem));
  return findings;
}

function judgeServer({ server, serverUrl }: JobsFacts, now: Date): Finding[] {
  if (!server.reachable) return [failure(server.why, { where: serverUrl })];
  if (server.status === 401 || server.status === 403) {
    const fix = 'issue a bootstrap token and put it in place';
    return [failure(`the server does not know our token (${server.status})`, { where: serverUrl, fix })];
  }
  if (server.dateHeader === undefined) return [];
  const aheadMs = now.getTime() - server.dateHeader.getTime();
  if (Math.abs(aheadMs) < skewMs) return [];
  const what = `this clock is ${formatDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the server's`;
  const details = { where: serverUrl, fix: 'timedatectl set-ntp true' };
  return [Math.abs(aheadMs) < farSkewMs ? warning(what, details) : failure(what, details)];
}

function judgeOpenJobs({ open }: JobsFacts, now: Date): Finding[] {
  const old = open.filter(({ claimedAt, trouble }) => {
    if (trouble !== undefined) return false;
    const ageMs = now.getTime() - Date.parse(claimedAt ?? '');
    return !(ageMs <= dayMs);
  });
  const undelivered = open.filter(({ hasCompletion }) => hasCompletion);
  const findings: Finding[] = open.flatMap(({ key, trouble }) =>
    trouble === undefined ? [] : [warning(`the records of a job cannot be read: ${trouble}`, { where: key })],
  );
  if (old.length > 0) {
    const fix = '`reeve job show ID` tells what it does, `reeve job cancel ID` ends it';
    findings.push(
      warning(`${plural(old.length, 'job')} open for more than a day`, {
        where: listNames(old.map(({ key }) => key)),
        fix,
      }),
    );
  }
  if (undelivered.length > 0) {
    const why = undelivered.find(({ lastError }) => lastError !== undefined)?.lastError;
    findings.push(
      warning(
        `${plural(undelivered.length, 'completion')} not delivered yet${why === undefined ? '' : `: ${why}`}`,
        {
          where: listNames(undelivered.map(({ key }) => key)),
        },
      ),
    );
  }
  return findings;
}
