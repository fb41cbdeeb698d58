import { describe, expect, it } from 'vitest';
import { buildContainerBody, checkContainerSpec } from '../../../src/lib/docker/spec.ts';
import type { ContainerSpec } from '../../../src/lib/docker/types.ts';
import { InputError } from '../../../src/lib/errors.ts';

const bare: ContainerSpec = {
  name: 'web',
  image: 'blog/web:1',
  env: {},
  labels: {},
  restart: 'no',
  ports: [],
  volumes: [],
  logs: { maxSizeBytes: 10_485_760, maxFiles: 3 },
};

function refusal(env: Record<string, string>): string {
  try {
    checkContainerSpec({ ...bare, env });
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

describe('the body of a create request', () => {
  it('has bounded logs and nothing that was not asked for (R62)', () => {
    expect(buildContainerBody(bare)).toEqual({
      Image: 'blog/web:1',
      Env: [],
      Labels: {},
      ExposedPorts: {},
      HostConfig: {
        RestartPolicy: { Name: 'no', MaximumRetryCount: 0 },
        PortBindings: {},
        Mounts: [],
        LogConfig: { Type: 'json-file', Config: { 'max-size': '10485760', 'max-file': '3' } },
      },
    });
  });

  it('carries limits, network, ports and volumes', () => {
    const spec: ContainerSpec = {
      ...bare,
      env: { A: ' b=c\n', EMPTY: '' },
      labels: { 'reeve.node': 'app-1' },
      command: ['/app/web', '--x'],
      cpus: 0.25,
      memoryBytes: 268_435_456,
      restart: 'unless-stopped',
      network: { name: 'launchpadnet_blog', aliases: ['web'] },
      ports: [
        { containerPort: 8080, hostPort: 20000, hostIp: '127.0.0.1' },
        { containerPort: 8080, hostPort: 20001, hostIp: '10.0.0.1' },
      ],
      volumes: [
        { name: 'data', path: '/data', labels: { a: 'b' } },
        { name: 'tmp', path: '/tmp/x' },
      ],
    };
    expect(buildContainerBody(spec)).toEqual({
      Image: 'blog/web:1',
      Env: ['A= b=c\n', 'EMPTY='],
      Labels: { 'reeve.node': 'app-1' },
      Cmd: ['/app/web', '--x'],
      ExposedPorts: { '8080/tcp': {} },
      HostConfig: {
        RestartPolicy: { Name: 'unless-stopped', MaximumRetryCount: 0 },
        NanoCpus: 250_000_000,
        Memory: 268_435_456,
        PortBindings: {
          '8080/tcp': [
            { HostIp: '127.0.0.1', HostPort: '20000' },
            { HostIp: '10.0.0.1', HostPort: '20001' },
          ],
        },
        Mounts: [
          { Type: 'volume', Source: 'data', Target: '/data', VolumeOptions: { Labels: { a: 'b' } } },
          { Type: 'volume', Source: 'tmp', Target: '/tmp/x' },
        ],
        LogConfig: { Type: 'json-file', Config: { 'max-size': '10485760', 'max-file': '3' } },
        NetworkMode: 'launchpadnet_blog',
      },
      NetworkingConfig: { EndpointsConfig: { launchpadnet_blog: { Aliases: ['web'] } } },
    });
  });
});

describe('variables that no process can be given', () => {
  it('are refused by name, never by value (R50)', () => {
    expect(refusal({ TOKEN: 'hush\0hush' })).toBe(
      'cannot create container "web": variable "TOKEN" has a NUL character in its value',
    );
    expect(refusal({ '': 'hush' })).toBe('cannot create container "web": variable "" has no name');
    expect(refusal({ 'TOKEN=hush': '' })).toBe(
      'cannot create container "web": variable "TOKEN" has "=" in its name',
    );
    expect(refusal({ 'A\0B': 'hush' })).toBe(
      'cannot create container "web": variable "A\\u0000B" has a NUL character in its name',
    );
    expect(refusal({ TOKEN: 'hush\ud800' })).toBe(
      'cannot create container "web": variable "TOKEN" is not valid Unicode',
    );
  });

  it('are refused when one is longer than the kernel takes, to the byte', () => {
    const longest = { NAME: 'é'.repeat((131_071 - 5) / 2) };
    expect(() => checkContainerSpec({ ...bare, env: longest })).not.toThrow();
    expect(refusal({ NAME: `${longest.NAME}x` })).toBe(
      'cannot create container "web": variable "NAME" has 131072 bytes with its name, more than the 131071 that a process can be given',
    );
  });

  it('are refused when they are too many bytes together, naming the largest', () => {
    const env: Record<string, string> = { LARGEST: 'x'.repeat(131_000) };
    for (let index = 0; index < 15; index += 1) env[`V${index}`] = 'x'.repeat(125_000);
    expect(refusal(env)).toBe(
      'cannot create container "web": its variables have 2006202 bytes together, more than the 1900000 that a process can be given; the largest is "LARGEST"',
    );
  });

  it('leave ordinary ones alone', () => {
    const env = { A: '', 'a b': '=\n\t"$`', é: '\ufeff😀', DOCKER_HOST: 'x', LD_PRELOAD: 'y', PATH: 'z' };
    expect(() => checkContainerSpec({ ...bare, env })).not.toThrow();
  });
});

it('an image reference that is none is refused', () => {
  expect(() => checkContainerSpec({ ...bare, image: '../x' })).toThrow(InputError);
});
