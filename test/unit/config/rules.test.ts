import { describe, expect, it } from 'vitest';
import {
  listSwitchedOff,
  requireActionsNode,
  requireCluster,
  requireNode,
  requireRole,
  requireSection,
} from '../../../src/lib/config/rules.ts';
import { createConfigHome } from '../../support/config-home.ts';

async function load(yaml: string) {
  const home = await createConfigHome(yaml);
  return { config: await home.load(), file: home.paths.configFile };
}

function messageOf(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    const { message, exitCode } = error as { message: string; exitCode: number };
    return { message, exitCode };
  }
}

describe('requirements', () => {
  it.each([
    [
      'app',
      'edge',
      'edge',
      'cannot run reeve edge: the role of node a is app, not edge: run `reeve reconcile` instead',
    ],
    [
      'edge',
      'app',
      'reconcile',
      'cannot run reeve reconcile: the role of node a is edge, not app: run `reeve edge` instead',
    ],
  ] as const)(
    'a node that is %s fails closed as %s and names the right command (L13, L14)',
    async (own, asked, command, message) => {
      const { config } = await load(`cluster: { nodeId: a, role: ${own} }\n`);
      expect(messageOf(() => requireRole(config, asked, command))).toEqual({ message, exitCode: 78 });
    },
  );

  it('lets a box that is both do either (L13)', async () => {
    const { config } = await load('cluster: { nodeId: a, role: [app, edge] }\n');
    expect(requireRole(config, 'app', 'reconcile').nodeId).toBe('a');
    expect(requireRole(config, 'edge', 'edge').edgeId).toBe('a-edge');
  });

  it.each([
    ['cluster', 'nodeId and store'],
    ['jobs', 'server_url and node_id, or file: /etc/ploy/ployd-node.yaml'],
    ['commands', 'machine_id, token and central_base_url, or file: /etc/agenda-node/agenda-node.yaml'],
    ['actions', 'node, or root on the control side'],
  ] as const)(
    'names section %s where it is missing, the file, and what is to be written',
    async (name, least) => {
      const { config, file } = await load('hooks: {}\n');
      expect(messageOf(() => requireSection(config, name))).toEqual({
        message: `section ${name} is missing in ${file}: write it, with ${least}`,
        exitCode: 78,
      });
    },
  );

  it('tells a node from a machine that only deploys', async () => {
    const { config, file } = await load('cluster: { store: "file:///s" }\n');
    expect(requireCluster(config).store).toBe('file:///s');
    expect(messageOf(() => requireNode(config))).toEqual({
      message: `cluster.nodeId is missing in ${file}: this machine is no node`,
      exitCode: 78,
    });
  });

  const ofJobs = 'claim job api-jobs';
  const ofCommands = 'command api-commands proxy';
  const ofActions = 'rsync-pull deploy-action action';
  const ofAll = `${ofJobs} ${ofCommands} ${ofActions}`;
  it.each([
    ['cluster: { nodeId: a, notify: sns }', `edge balancer ${ofAll}`],
    ['cluster: { nodeId: a, notify: none }', `edge balancer listen ${ofAll}`],
    ['cluster: { nodeId: a, role: edge }', `reconcile backup backup-verify prune listen ${ofAll}`],
    ['cluster: { nodeId: a, role: [app, edge], notify: sns, balancer: caddy }', `balancer ${ofAll}`],
    [
      'cluster: { clusterId: prod }',
      `reconcile edge heartbeat backup backup-verify prune balancer listen ${ofAll}`,
    ],
    [
      'jobs: { server_url: "http://s", node_id: a }',
      `reconcile edge backup backup-verify prune balancer listen ${ofCommands} ${ofActions}`,
    ],
    [
      'commands: { machine_id: 1, token: t, central_base_url: "https://s" }',
      `reconcile edge backup backup-verify prune balancer listen ${ofJobs} ${ofActions}`,
    ],
    [
      'commands: { machine_id: 1, token: t }',
      `reconcile edge backup backup-verify prune balancer listen ${ofJobs} ${ofActions}`,
    ],
    [
      'actions: { node: a, pull: "c:/d", push: "c:/e", checkout: /opt/c }',
      `reconcile edge heartbeat backup backup-verify prune balancer listen ${ofJobs} ${ofCommands} action`,
    ],
    [
      'actions: { root: /opt/homelab/actions }',
      `reconcile edge heartbeat backup backup-verify prune balancer listen ${ofJobs} ${ofCommands} rsync-pull deploy-action`,
    ],
  ])('with %s has switched off: %s', async (section, off) => {
    const { config } = await load(`${section.replace('cluster: {', 'cluster: { region: eu-west-1,')}\n`);
    expect([...listSwitchedOff(config)].join(' ')).toBe(off);
  });

  it('tells the node of actions from the control side', async () => {
    const { config, file } = await load('actions: { root: /r }\n');
    expect(messageOf(() => requireActionsNode(config))).toEqual({
      message: `actions.node is missing in ${file}: this machine has only the control side`,
      exitCode: 78,
    });
  });
});
