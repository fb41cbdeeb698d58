// The section `jobs` as it stands on this machine: who we are for the server, whether it is there, and what is still open. Pure.
import { formatDuration } from '../time.ts';
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';

export type JobsFacts = {
  serverUrl: string;
  tokenFile: string;
  /** Undefined where there is no file. */
  tokenMode: number | undefined;
  /** Whether one was issued, and where it and its key lie; undefined where TLS is off. */
  certificate: { isIssued: boolean; files: readonly string[] } | undefined;
  bootstrapToken: { file: string; isThere: boolean };
  /** Why certificate, key and token are of no use together; undefined where they are. */
  identityProblem: string | undefined;
  /** Undefined where it was not asked, as there is nothing to ask it with. */
  server:
    | undefined
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

function judgeIdentity(facts: JobsFacts): Finding[] {
  const { tokenFile, tokenMode, identityProblem } = facts;
  if (facts.certificate?.isIssued === false) return judgeBootstrap(facts);
  const findings: Finding[] = [];
  if (tokenMode === undefined) {
    const details = { where: tokenFile, fix: sayHowToBegin(facts) };
    findings.push(failure('there is no token for the server', details));
  } else if ((tokenMode & 0o077) !== 0) {
    const fix = `chmod 600 ${tokenFile}`;
    findings.push(failure('the token can be read by others', { where: tokenFile, fix }));
  }
  if (tokenMode !== undefined && identityProblem !== undefined) findings.push(failure(identityProblem));
  return findings;
}

/** There is no certificate yet: what is needed for one. */
function judgeBootstrap({ bootstrapToken: { file, isThere }, identityProblem }: JobsFacts): Finding[] {
  const findings = identityProblem === undefined ? [] : [failure(identityProblem)];
  const fix = isThere ? '`reeve claim` exchanges it for one' : sayIssue(file);
  const begin = isThere
    ? warning('there is no certificate yet, but a bootstrap token', { where: file, fix })
    : failure('there is no certificate with its key, and no bootstrap token for one', { where: file, fix });
  return [...findings, begin];
}

const sayIssue = (file: string): string =>
  `issue a bootstrap token (POST /v1/bootstrap/tokens) and write it to ${file}`;

/** A certificate that is there is not exchanged again, and the server gives none to a node that it has. */
function sayHowToBegin({ certificate, tokenFile, bootstrapToken }: JobsFacts): string {
  if (certificate === undefined) return `write the token that the server gave for this node to ${tokenFile}`;
  return `remove the node on the server and ${certificate.files.join(' and ')} here, then ${sayIssue(bootstrapToken.file)}`;
}

function judgeServer(facts: JobsFacts, now: Date): Finding[] {
  const { server, serverUrl } = facts;
  if (server === undefined) return [];
  if (!server.reachable) return [failure(server.why, { where: serverUrl })];
  if (server.status === 401 || server.status === 403) {
    const details = { where: serverUrl, fix: sayHowToBegin(facts) };
    return [failure(`the server does not know our token (${server.status})`, details)];
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
