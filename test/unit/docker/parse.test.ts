import { describe, expect, it } from 'vitest';
import { UnexpectedAnswer } from '../../../src/lib/docker/errors.ts';
import {
  parseContainerDetails,
  parseContainerList,
  parseContainerNetworks,
} from '../../../src/lib/docker/parse.ts';

const id = 'e509b6d8e510c1d66ad22e8b0974423a6eef1488702d1b796ce6c383c13e2d00';
const imageId = 'sha256:311bdf2a699d5223d9eab2ddfb3978ccad282aee0e2777d068d71fd92eb3ee20';

/** One row of `GET /containers/json` as Docker 20.10 gives it (API 1.41). */
const row2010 = {
  Id: id,
  Names: ['/launchpad_blog_web_0'],
  Image: 'blog/web:1',
  ImageID: imageId,
  Command: '/app/web',
  Created: 1_780_000_000,
  Ports: [
    { IP: '127.0.0.1', PrivatePort: 8080, PublicPort: 28080, Type: 'tcp' },
    { PrivatePort: 9090, Type: 'tcp' },
  ],
  Labels: { 'launchpad.managed': 'true' },
  State: 'running',
  Status: 'Up 3 hours (healthy)',
  HostConfig: { NetworkMode: 'launchpadnet_blog' },
  NetworkSettings: { Networks: { launchpadnet_blog: { IPAMConfig: null, Aliases: null } } },
  Mounts: [
    { Type: 'volume', Name: 'launchpadvol_blog_web_data', Source: '', Destination: '/data', Driver: 'local' },
    { Type: 'bind', Source: '/srv', Destination: '/srv' },
  ],
};

const summary = {
  id,
  name: 'launchpad_blog_web_0',
  image: 'blog/web:1',
  imageId,
  labels: { 'launchpad.managed': 'true' },
  state: 'running',
  statusText: 'Up 3 hours (healthy)',
  createdAt: new Date('2026-05-28T20:26:40Z'),
  ports: [{ containerPort: 8080, hostPort: 28080, hostIp: '127.0.0.1' }],
  networks: ['launchpadnet_blog'],
  volumes: ['launchpadvol_blog_web_data'],
};

describe('a container in the list', () => {
  it('is read as Docker 20.10 gives it', () => {
    expect(parseContainerList([row2010])).toEqual([summary]);
  });

  it('is read as Docker 29 gives it, with fields that we do not know', () => {
    const row = {
      ...row2010,
      ImageManifestDescriptor: { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest: imageId },
      HostConfig: { NetworkMode: 'launchpadnet_blog', Annotations: { a: 'b' } },
      Health: { Status: 'healthy', FailingStreak: 0 },
      NetworkSettings: { Networks: { launchpadnet_blog: { GwPriority: 0, DNSNames: null } } },
    };
    expect(parseContainerList([row])).toEqual([summary]);
  });

  it('is read as podman gives it, with null for what is empty', () => {
    const row = {
      Id: id,
      Names: ['/worker'],
      Image: 'docker.io/library/worker:1',
      ImageID: imageId,
      Created: 1_780_000_000,
      Ports: null,
      Labels: null,
      State: 'configured',
      Status: 'Created',
      NetworkSettings: null,
      Mounts: null,
      Name: '',
      Config: null,
      Platform: null,
    };
    expect(parseContainerList([row])).toEqual([
      {
        id,
        name: 'worker',
        image: 'docker.io/library/worker:1',
        imageId,
        labels: {},
        state: 'created',
        statusText: 'Created',
        createdAt: new Date('2026-05-28T20:26:40Z'),
        ports: [],
        networks: [],
        volumes: [],
      },
    ]);
  });

  it('needs nothing but its id', () => {
    expect(parseContainerList([{ Id: id }])).toEqual([
      {
        id,
        name: '',
        image: '',
        imageId: '',
        labels: {},
        state: 'created',
        statusText: '',
        createdAt: new Date(0),
        ports: [],
        networks: [],
        volumes: [],
      },
    ]);
  });

  it('has its own name, not one that a link gave it', () => {
    const [row] = parseContainerList([{ Id: id, Names: ['/web/db', '/db'] }]);
    expect(row?.name).toBe('db');
  });

  it('keeps labels byte for byte, whatever they are called', () => {
    const labels = JSON.parse('{"__proto__":"a","a,b=c":" \\n\\u0000","":"empty"}');
    const [row] = parseContainerList([{ Id: id, Labels: labels }]);
    expect(Object.entries(row?.labels ?? {})).toEqual([
      ['__proto__', 'a'],
      ['a,b=c', ' \n\u0000'],
      ['', 'empty'],
    ]);
  });

  it.each([
    ['created', 'created'],
    ['restarting', 'restarting'],
    ['removing', 'removing'],
    ['paused', 'paused'],
    ['exited', 'exited'],
    ['dead', 'dead'],
    ['stopped', 'exited'],
    ['stopping', 'running'],
    ['Running', 'running'],
    ['hibernating', 'created'],
    [undefined, 'created'],
  ])('in state %s counts as %s', (word, state) => {
    expect(parseContainerList([{ Id: id, State: word }])[0]?.state).toBe(state);
  });

  it.each([[undefined], [null], [{}], ['[]'], [[{}]], [[{ Id: '' }]], [[null]]])(
    'is refused in an answer like %j, which never means an empty list',
    (answer) => {
      expect(() => parseContainerList(answer)).toThrow(UnexpectedAnswer);
    },
  );
});

describe('an inspected container', () => {
  const details2010 = {
    Id: id,
    Created: '2026-05-28T20:26:40.123456789Z',
    State: {
      Status: 'exited',
      Running: false,
      OOMKilled: true,
      Pid: 0,
      ExitCode: 137,
      Error: '',
      StartedAt: '2026-05-28T20:26:41.123456789Z',
      FinishedAt: '2026-05-28T20:27:41.5Z',
    },
    Image: imageId,
    Name: '/launchpad_blog_web_0',
    RestartCount: 2,
    Config: { Env: ['A=b\nc', 'PATH=/bin'], Image: 'blog/web:1', Labels: { a: 'b' } },
    NetworkSettings: { Networks: { launchpadnet_blog: {}, bridge: {} } },
  };

  it('is read as Docker 20.10 gives it', () => {
    expect(parseContainerDetails(details2010)).toEqual({
      id,
      name: 'launchpad_blog_web_0',
      state: 'exited',
      exitCode: 137,
      error: '',
      oomKilled: true,
      startedAt: new Date('2026-05-28T20:26:41.123Z'),
      finishedAt: new Date('2026-05-28T20:27:41.500Z'),
      restartCount: 2,
      labels: { a: 'b' },
      env: ['A=b\nc', 'PATH=/bin'],
      image: 'blog/web:1',
      imageId,
    });
    expect(parseContainerNetworks(details2010)).toEqual(['launchpadnet_blog', 'bridge']);
  });

  it('is read as podman gives it: local time zone, no labels, never finished', () => {
    const details = parseContainerDetails({
      ...details2010,
      State: {
        OciVersion: '1.2.0',
        Status: 'running',
        StartedAt: '2026-05-28T22:26:41.12+02:00',
        FinishedAt: '0001-01-01T00:00:00Z',
      },
      Config: { Env: null, Image: 'docker.io/library/web:1', Labels: null },
      NetworkSettings: { Networks: null },
    });
    expect(details).toEqual({
      id,
      name: 'launchpad_blog_web_0',
      state: 'running',
      exitCode: 0,
      error: '',
      oomKilled: false,
      startedAt: new Date('2026-05-28T20:26:41.120Z'),
      finishedAt: undefined,
      restartCount: 2,
      labels: {},
      env: [],
      image: 'docker.io/library/web:1',
      imageId,
    });
  });

  it('is refused without an id', () => {
    expect(() => parseContainerDetails({ message: 'hello' })).toThrow(UnexpectedAnswer);
  });
});
