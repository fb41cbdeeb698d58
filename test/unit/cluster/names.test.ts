import { describe, expect, it } from 'vitest';
import * as keys from '../../../src/lib/cluster/keys.ts';
import {
  containerName,
  networkName,
  ownershipOf,
  parseReplicaLabels,
  replicaLabels,
  volumeName,
} from '../../../src/lib/cluster/names.ts';
import { aReplica, aService } from '../../support/builders.ts';

describe('labels', () => {
  const replica = aReplica(aService(), { index: 2, cronFire: 1_780_000_000_000, jobRun: 'r1' });

  it('carry the whole identity under launch-pad names and the node under ours (L19, L53)', () => {
    expect(replicaLabels(replica, 'web-1')).toEqual({
      'launchpad.managed': 'true',
      'launchpad.project': 'blog',
      'launchpad.service': 'web',
      'launchpad.image': 'registry.example/blog/web:1.0.0',
      'launchpad.replica': '2',
      'launchpad.cpu': '512',
      'launchpad.memory': '256',
      'launchpad.configStamp': '{"env":{},"restartAt":null,"secretRefs":[]}',
      'launchpad.cronFire': '1780000000000',
      'launchpad.jobRun': 'r1',
      'reeve.node': 'web-1',
    });
  });

  it('read back as the identity they were written from (L19)', () => {
    expect(parseReplicaLabels(replicaLabels(replica, 'web-1'))).toEqual(replica);
    const plain = aReplica(aService());
    expect(parseReplicaLabels(replicaLabels(plain, 'web-1'))).toEqual(plain);
  });

  it.each([
    ['no label of ours', {}],
    ['not managed', { 'launchpad.project': 'blog', 'launchpad.service': 'web' }],
    ['no project', { 'launchpad.managed': 'true', 'launchpad.service': 'web' }],
    ['an empty service', { 'launchpad.managed': 'true', 'launchpad.project': 'p', 'launchpad.service': '' }],
  ])('with %s are nobody (L19)', (_, labels: Record<string, string>) => {
    expect(parseReplicaLabels(labels)).toBeUndefined();
  });

  it('that are unreadable become values that no desired state has', () => {
    const labels = {
      'launchpad.managed': 'true',
      'launchpad.project': 'blog',
      'launchpad.service': 'web',
      'launchpad.replica': '-1',
      'launchpad.cpu': 'many',
      'launchpad.memory': '1e9',
      'launchpad.cronFire': '0',
      'launchpad.jobRun': '',
    };
    expect(parseReplicaLabels(labels)).toEqual({
      project: 'blog',
      service: 'web',
      image: '',
      index: 0,
      cpu: 0,
      memory: 0,
      configStamp: '',
      cronFire: undefined,
      jobRun: undefined,
    });
  });

  it.each([
    ['ours', { 'launchpad.managed': 'true', 'reeve.node': 'web-1' }],
    ['stranger', { 'launchpad.managed': 'true', 'reeve.node': 'web-2' }],
    ['adoptable', { 'launchpad.managed': 'true' }],
    ['foreign', { 'reeve.scratch': 'x' }],
  ])('tell that a container is %s', (ownership, labels: Record<string, string>) => {
    expect(ownershipOf(labels, 'web-1')).toBe(ownership);
  });
});

describe('names', () => {
  it('of containers, networks and volumes are the known ones (L141, L142)', () => {
    const service = { project: 'blog', service: 'web' };
    expect([
      containerName({ ...service, index: 3 }),
      networkName('blog'),
      volumeName(service, 'data'),
    ]).toEqual(['launchpad_blog_web_3', 'launchpadnet_blog', 'launchpadvol_blog_web_data']);
  });

  it('of volumes do not depend on the replica, so that a rollout finds the data again (L142, L143)', () => {
    const names = [0, 1].map((index) => volumeName(aReplica(aService(), { index }), 'data'));
    expect(new Set(names)).toEqual(new Set(['launchpadvol_blog_web_data']));
  });
});

describe('store keys', () => {
  it('of the default cluster lie below nodes/', () => {
    expect([
      keys.nodePrefix('default', 'web-1'),
      keys.desiredKey('default', 'web-1'),
      keys.statusKey('default', 'web-1'),
      keys.nodeKey('default', 'web-1'),
      keys.edgeKey('default', 'edge-1'),
      keys.upstreamPrefix('default', 'edge-1'),
      keys.upstreamKey('default', 'edge-1', 'web-1'),
      keys.clusterKey('default'),
      keys.reeveKey('default', 'web-1'),
      keys.removalsKey('default', 'web-1'),
      keys.deploysPrefix('default', 'web-1'),
    ]).toEqual([
      'nodes/web-1/',
      'nodes/web-1/desired.json',
      'nodes/web-1/status.json',
      'nodes/web-1/node.json',
      'nodes/edge-1/edge.json',
      'nodes/edge-1/upstream/',
      'nodes/edge-1/upstream/web-1.json',
      'clusters/default/cluster.json',
      'nodes/web-1/reeve.json',
      'nodes/web-1/removals.json',
      'nodes/web-1/deploys/',
    ]);
  });

  it('of another cluster lie below its own prefix', () => {
    expect([keys.nodesPrefix('eu'), keys.desiredKey('eu', 'web-1'), keys.clusterKey('eu')]).toEqual([
      'clusters/eu/nodes/',
      'clusters/eu/nodes/web-1/desired.json',
      'clusters/eu/cluster.json',
    ]);
  });

  it.each(['..', 'a/b', '', 'a b', 'a\nb', '-a'])('refuse the id %j', (id) => {
    expect(() => keys.nodePrefix('default', id)).toThrow(`cannot use node id ${JSON.stringify(id)}`);
    expect(() => keys.nodePrefix(id, 'web-1')).toThrow(`cannot use cluster id ${JSON.stringify(id)}`);
  });
});
