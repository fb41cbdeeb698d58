// Looks for other agents among systemd's units and the processes of this machine.
import { readdir, readFile } from 'node:fs/promises';
import { gatherActiveUnits } from './gather-units.ts';
import { type AgentFacts, type AgentSection, agentUnits } from './judge-agents.ts';
import type { World } from './world.ts';

export async function gatherAgents(world: World): Promise<AgentFacts> {
  const { config } = world;
  const names: readonly AgentSection[] = ['cluster', 'jobs', 'commands', 'actions'];
  const hasNode = config?.cluster?.nodeId !== undefined;
  return {
    sections: names.filter((name) => config?.[name] !== undefined && (name !== 'cluster' || hasNode)),
    activeUnits: (await world.units()) === undefined ? [] : await gatherActiveUnits(agentUnits),
    processes: await listProcesses(),
  };
}

/** The program and its first argument are enough; the others may hold secrets. */
async function listProcesses(): Promise<AgentFacts['processes']> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const processes = await Promise.all(
    pids.map(async (pid) => {
      // Gone meanwhile, or not ours to see.
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return { pid: Number(pid), args: line.split('\0').slice(0, 2) };
    }),
  );
  return processes.filter(({ args }) => args[0] !== '');
}
