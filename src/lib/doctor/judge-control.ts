// The control side of actions as it stands on this machine: its tree, who may write where, and what nodes owe it. Pure.
import type { ControlSurvey } from '../actions/control/survey.ts';
import { formatDuration } from '../time.ts';
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';
import type { PathFacts } from './judge-files.ts';

/** For the next run to come. */
const patienceMs = 10 * 60_000;

/** As people know it, below the root. */
export const eventsName = '../events';

export type TreeDirectory = PathFacts & {
  /** Below the root, as people know it. */
  name: string;
  isDirectory: boolean;
  isLink: boolean;
  writable: boolean;
  device: number | undefined;
};

export type ControlFacts = {
  root: string;
  /** The root comes first. */
  directories: readonly TreeDirectory[];
  /** Below `deploy` and `events`, where nodes have theirs. */
  links: readonly string[];
  survey: ControlSurvey | { problem: string };
};

export function judgeControl({ root, directories, links, survey }: ControlFacts): Finding[] {
  const [top] = directories;
  if (top === undefined || top.isLink || !top.isDirectory) {
    if (top?.isLink === true) return [judgeLink(root, 'have actions.root name what it leads to')];
    const fix = 'make it, or correct actions.root';
    return [failure('there is no such directory, which actions.root names', { where: root, fix })];
  }
  const findings = [
    ...directories.flatMap((directory) => judgeDirectory(directory, top)),
    ...(links.length === 0 ? [] : [judgeLink(listNames(links), linkFix)]),
  ];
  if ('problem' in survey) {
    // Mostly the very directory that is told of.
    if (findings.length > 0) return findings;
    return [failure(`actions cannot be counted: ${survey.problem}`, { where: root })];
  }
  findings.push(...judgeLate(survey));
  const { pending, approved, running } = survey;
  const fine = `control host: ${pending} pending, ${approved} approved, ${running} running`;
  return orOk(findings, ok(fine, { where: root }));
}

const linkFix = 'have a directory there: whoever may swap it for a link would say where root writes';

function judgeLink(where: string, fix: string): Finding {
  return failure('a symbolic link, and none is followed there', { where, fix });
}

/** Without events no redeploy has an end; the other directories are made when they are needed. */
function judgeDirectory(directory: TreeDirectory, top: TreeDirectory): Finding[] {
  const { path: where, name, mode, error, isLink, isDirectory } = directory;
  if (isLink) return [judgeLink(where, linkFix)];
  if (error !== undefined) return [failure(`it cannot be looked at: ${error}`, { where })];
  const isEvents = name === eventsName;
  if (mode === undefined) {
    if (!isEvents) return [];
    const fix = 'make it, with a directory for each node in it';
    return [warning('nodes have nowhere to report to: every redeploy will have failed', { where, fix })];
  }
  if (!isDirectory) return [failure('it is no directory', { where })];
  return judgeAccess(directory, mode, top);
}

function judgeAccess(directory: TreeDirectory, mode: number, top: TreeDirectory): Finding[] {
  const { path: where, name, writable, device } = directory;
  const isEvents = name === eventsName;
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
