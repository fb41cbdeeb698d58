// Other systems' agents that do the same work on this machine: two of them undo each other's. Pure.
import { basename } from 'node:path';
import { type Finding, failure, ok, orOk } from './finding.ts';

/** The section of our configuration that does what the agent does. */
export type AgentSection = 'cluster' | 'jobs' | 'commands' | 'actions';

const agents: readonly { name: string; section: AgentSection }[] = [
  { name: 'launch-pad-agent', section: 'cluster' },
  { name: 'ployd-node', section: 'jobs' },
  { name: 'agenda-node', section: 'commands' },
  { name: 'deploy-runner', section: 'actions' },
];

export const agentUnits = agents.flatMap(({ name }) => [`${name}.service`, `${name}.timer`]);

export type AgentFacts = {
  sections: readonly AgentSection[];
  activeUnits: readonly string[];
  processes: readonly { pid: number; args: readonly string[] }[];
};

export function judgeAgents({ sections, activeUnits, processes }: AgentFacts): Finding[] {
  const findings = agents
    .filter(({ section }) => sections.includes(section))
    .flatMap(({ name, section }): Finding[] => {
      const units = activeUnits.filter((unit) => unit.startsWith(`${name}.`));
      const pids = processes.filter(({ args }) => programOf(args) === name).map(({ pid }) => pid);
      if (units.length === 0 && pids.length === 0) return [];
      const where = units.length > 0 ? units.join(', ') : `pid ${pids.join(', ')}`;
      const fix =
        units.length > 0 ? `systemctl disable --now ${units.join(' ')}` : `end pid ${pids.join(' ')}`;
      return [failure(`${name} runs, too: section ${section} does its work`, { where, fix })];
    });
  return orOk(findings, ok('no other agent does the same work'));
}

const interpreters = /^(node|bun|deno|python[\d.]*|sh|bash|dash)$/;

/** The program's name without its extension; a script's rather than its interpreter's. */
function programOf(args: readonly string[]): string {
  const [first = '', second = ''] = args;
  const word = interpreters.test(basename(first)) ? second : first;
  return basename(word).replace(/\.[a-z]+$/, '');
}
