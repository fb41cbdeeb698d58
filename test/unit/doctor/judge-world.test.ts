import { describe, expect, it } from 'vitest';
import { type AgentFacts, agentUnits, judgeAgents } from '../../../src/lib/doctor/judge-agents.ts';
import {
  type EngineFacts,
  judgeContainers,
  judgeEngine,
  judgeEngineFailure,
} from '../../../src/lib/doctor/judge-engine.ts';
import { judgeStore, judgeStoreFailure, type StoreFacts } from '../../../src/lib/doctor/judge-store.ts';

describe('the engine', () => {
  const facts: EngineFacts = {
    socket: '/var/run/docker.sock',
    version: '20.10.24',
    apiVersion: '1.41',
    containers: 3,
    strangers: [],
    unboundedLogs: [],
  };
  const where = '/var/run/docker.sock';

  it('is told with its version', () => {
    expect(judgeEngine(facts)).toEqual([
      { level: 'ok', what: 'version 20.10.24, API 1.41, 3 containers', where },
    ]);
    expect(judgeEngine({ ...facts, version: '', apiVersion: undefined })[0]?.what).toBe(
      'version unknown, 3 containers',
    );
  });

  it('that cannot be reached is a failure', () => {
    expect(judgeEngineFailure(where, 'no engine')).toEqual([
      expect.objectContaining({ level: 'failure', what: 'no engine', where }),
    ]);
  });

  it('holds no strangers and no logs without a bound', () => {
    expect(judgeContainers(facts)).toEqual([{ level: 'ok', what: 'no strangers, no unbounded logs' }]);
  });

  it('with containers of another node, or with logs that have grown large, is told of (R62)', () => {
    const unboundedLogs = [
      { name: 'theirs', sizeBytes: 200 * 1024 ** 2 },
      { name: 'small', sizeBytes: 1024 },
    ];
    expect(judgeContainers({ ...facts, strangers: ['a', 'b'], unboundedLogs })).toEqual([
      expect.objectContaining({
        level: 'warning',
        what: '2 of another node, which reeve leaves alone',
        where: 'a, b',
      }),
      {
        level: 'warning',
        what: 'its log has 200 MiB and no bound',
        where: 'theirs',
        fix: 'create it with --log-opt max-size=10m, or set log-opts in /etc/docker/daemon.json',
      },
    ]);
  });
});

describe('the store', () => {
  const url = 'file:///store';
  const node = {
    nodeId: 'web-1',
    isProbed: true,
    agentType: 'rust',
    clockAheadMs: 0,
    writeError: undefined,
    desired: { kind: 'document' as const, rejected: [] },
    strays: [],
    edgeId: undefined,
  };
  const facts = (overrides: Partial<typeof node | { desired: object }> = {}): StoreFacts =>
    ({ url, nodes: 2, node: { ...node, ...overrides } }) as StoreFacts;

  it('that works is one line', () => {
    expect(judgeStore(facts())).toEqual([
      { level: 'ok', what: '2 nodes, and it can be written', where: url },
    ]);
    expect(judgeStore({ url, nodes: 1 })).toEqual([{ level: 'ok', what: '1 node', where: url }]);
    expect(judgeStore(facts({ isProbed: false }))).toEqual([{ level: 'ok', what: '2 nodes', where: url }]);
  });

  it('tells of services that name this node as their edge, which is none', () => {
    const strays = ['a.test', 'b.test'];
    expect(judgeStore(facts({ strays, edgeId: 'web-1-edge' } as object))[1]).toEqual({
      level: 'failure',
      what: 'nobody routes a.test, b.test: the services name "web-1" as their edge, which is none',
      where: 'file:///store, node web-1',
      fix: 'deploy with ingress.edge: web-1-edge',
    });
    expect(judgeStore(facts({ strays } as object))[1]?.fix).toBe('deploy with the id of an edge');
  });

  it("warns while the registry says that launch-pad's TypeScript agent runs here (L177)", () => {
    expect(judgeStore(facts({ agentType: 'ts' }))[1]).toEqual({
      level: 'warning',
      what: "the registry says that launch-pad's TypeScript agent runs here",
      where: 'file:///store, node web-1',
      fix: 'write "agentType": "rust" into its node.json',
    });
  });

  it('that cannot be read or written is a failure', () => {
    expect(judgeStoreFailure({ store: url }, 'no such directory')).toEqual([
      {
        level: 'failure',
        what: 'it cannot be reached: no such directory',
        where: url,
        fix: 'mount the directory, or correct cluster.store',
      },
    ]);
    const bucket = { store: 's3://state', endpoint: 'http://127.0.0.1:4566' };
    expect(judgeStoreFailure(bucket, 'nothing listens there')).toEqual([
      {
        level: 'failure',
        what: 'it cannot be reached: nothing listens there',
        where: 's3://state at http://127.0.0.1:4566',
        fix: 'credentials or a role for this machine, or correct cluster.store, region or endpoint',
      },
    ]);
    expect(judgeStore(facts({ writeError: 'EROFS' } as object))[0]).toMatchObject({
      level: 'failure',
      what: 'EROFS',
      where: url,
    });
  });

  it.each([
    [4_999, undefined, ''],
    [undefined, undefined, ''],
    [5_000, 'warning', "this clock is 5s behind the store's"],
    [-60_000, 'failure', "this clock is 1m ahead of the store's"],
  ])('whose clock is %s ms ahead', (clockAheadMs, level, what) => {
    const [, finding] = judgeStore(facts({ clockAheadMs } as object));
    if (level === undefined) expect(finding).toBeUndefined();
    else expect(finding).toMatchObject({ level, what, where: url });
  });

  it('tells of a desired state that is missing, refused, or refused in part', () => {
    const where = 'file:///store, node web-1';
    expect(judgeStore(facts({ desired: { kind: 'none' } }))[1]).toEqual({
      level: 'warning',
      what: 'no desired state: nothing is done here',
      where,
      fix: '`reeve deploy FILE`',
    });
    // An edge has no containers to be told of.
    expect(judgeStore(facts({ desired: { kind: 'of-an-edge' } }))).toHaveLength(1);
    expect(judgeStore(facts({ desired: { kind: 'refused', error: 'version 9' } }))[1]).toMatchObject({
      level: 'failure',
      what: 'version 9',
      where,
    });
    expect(judgeStore(facts({ desired: { kind: 'document', rejected: ['bad name'] } }))[1]).toMatchObject({
      level: 'failure',
      what: 'bad name',
    });
  });
});

describe('other agents', () => {
  const facts = (overrides: Partial<AgentFacts> = {}): AgentFacts => ({
    sections: ['cluster', 'jobs', 'commands', 'actions'],
    activeUnits: [],
    processes: [],
    ...overrides,
  });

  it('that do not run are one line', () => {
    const processes = [
      { pid: 1, args: ['/usr/bin/vim', 'launch-pad-agent'] },
      { pid: 2, args: ['node', '/opt/other.js'] },
      { pid: 3, args: ['bash', ''] },
    ];
    expect(judgeAgents(facts({ processes }))).toEqual([
      { level: 'ok', what: 'no other agent does the same work' },
    ]);
  });

  it.each([
    ['launch-pad-agent', 'cluster'],
    ['ployd-node', 'jobs'],
    ['agenda-node', 'commands'],
    ['deploy-runner', 'actions'],
  ])('%s, whose work section %s does, are a failure, as units', (name, section) => {
    const unit = `${name}.service`;
    expect(agentUnits).toContain(unit);
    expect(judgeAgents(facts({ activeUnits: [unit] }))).toEqual([
      {
        level: 'failure',
        what: `${name} runs, too: section ${section} does its work`,
        where: unit,
        fix: `systemctl disable --now ${unit}`,
      },
    ]);
  });

  it.each([
    [['/opt/ploy/ployd-node', '-config']],
    [['node', '/opt/ployd-node.mjs']],
    [['/usr/bin/python3.11', 'ployd-node.py']],
  ])('are a failure as processes: %j', (args) => {
    expect(judgeAgents(facts({ processes: [{ pid: 9, args }] }))).toEqual([
      {
        level: 'failure',
        what: 'ployd-node runs, too: section jobs does its work',
        where: 'pid 9',
        fix: 'end pid 9',
      },
    ]);
  });

  it('whose section is not configured here are nobody’s business', () => {
    const activeUnits = ['agenda-node.service'];
    expect(judgeAgents(facts({ sections: ['cluster'], activeUnits }))[0]?.level).toBe('ok');
  });
});
