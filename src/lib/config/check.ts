// What `config check` answers. It compiles anew, as only that finds every problem and warning.
import { ExitCode } from '../exit-codes.ts';
import type { Outcome } from '../outcome.ts';
import { type CompiledConfig, compileConfig } from './compile.ts';
import type { Config } from './config.ts';
import type { Overrides } from './environment.ts';
import { readMainSource } from './load.ts';
import type { Paths } from './paths.ts';
import { describeProblem } from './problems.ts';

export function checkConfig(paths: Paths, overrides: Overrides): Outcome {
  const compiled = compileConfig(readMainSource(paths, overrides), { paths, overrides });
  const { config, problems } = compiled;
  const warnings = config.warnings.map((warning) => `warning: ${warning}`);
  if (problems.length > 0) {
    return {
      outcome: 'failed',
      exitCode: ExitCode.config,
      text: [...problems.map(describeProblem), ...warnings],
      data: { problems, warnings: config.warnings },
    };
  }
  const sections = listSections(compiled);
  return {
    outcome: 'done',
    text: [
      `ok ${paths.configFile}`,
      ...sections.map(({ name, file, summary }) => `ok ${name}: ${summary}${file ? ` (${file})` : ''}`),
      ...warnings,
    ],
    data: { sections, warnings: config.warnings, problems },
  };
}

type SectionSummary = { name: string; file?: string; summary: string };

function listSections({ config, seedFiles }: CompiledConfig): SectionSummary[] {
  return Object.entries(summarize(config)).map(([name, summary]) => {
    const file = (seedFiles as Record<string, string | undefined>)[name];
    return { name, ...(file === undefined ? {} : { file }), summary };
  });
}

function summarize({ cluster, jobs, commands, actions, hooks }: Config): Record<string, string> {
  const summaries: Record<string, string> = {};
  if (cluster) {
    const node = cluster.nodeId === undefined ? 'no node' : `node ${cluster.nodeId}`;
    const roles = cluster.roles.length === 0 ? '' : `, ${cluster.roles.join(' and ')}`;
    summaries['cluster'] = `${node} of ${cluster.clusterId}${roles}, store ${cluster.store}`;
  }
  if (jobs) summaries['jobs'] = `node ${jobs.nodeId}, at most ${jobs.concurrency} at once`;
  if (commands) summaries['commands'] = `machine ${commands.machineId}, API on ${commands.listenAddr}`;
  if (actions) {
    summaries['actions'] = actions.node === '' ? `control side in ${actions.root}` : `node ${actions.node}`;
  }
  if (hooks.failure) summaries['hooks'] = 'on failure';
  return summaries;
}
