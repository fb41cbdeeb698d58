// What we ask for when a container is created: the checks that the engine does too late or not at all, and the request body.
// Pure. Values never appear in a message.
import { InputError } from '../errors.ts';
import { parseImageReference } from './reference.ts';
import type { BindMount, ContainerSpec } from './types.ts';

/** execve(2): one string has at most 128 KiB with its NUL. The engine takes more, and the container then cannot start. */
const maxVariableBytes = 131_071;
/** All strings share a quarter of the 8 MiB stack; below 2 MiB with room for the image's own variables and the command. */
const maxEnvironmentBytes = 1_900_000;
/** Each string costs its NUL and a pointer as well. */
const bytesPerVariable = 9;

/** Throws InputError naming what cannot be; nothing has been asked of the engine then. */
export function checkContainerSpec(spec: ContainerSpec): void {
  parseImageReference(spec.image);
  let totalBytes = 0;
  for (const [name, value] of Object.entries(spec.env)) {
    const reason = refuseVariable(name, value);
    if (reason !== undefined) {
      throw new InputError(`cannot create container "${spec.name}": variable ${showName(name)} ${reason}`);
    }
    totalBytes += variableBytes(name, value) + bytesPerVariable;
  }
  if (totalBytes > maxEnvironmentBytes) {
    const [largest = ''] = Object.entries(spec.env)
      .map(([name, value]) => ({ name, bytes: variableBytes(name, value) }))
      .sort((left, right) => right.bytes - left.bytes)
      .map(({ name }) => name);
    throw new InputError(
      `cannot create container "${spec.name}": its variables have ${totalBytes} bytes together, more than the ${maxEnvironmentBytes} that a process can be given; the largest is ${showName(largest)}`,
    );
  }
}

/** The body of `POST /containers/create`. */
export function buildContainerBody(spec: ContainerSpec): Readonly<Record<string, unknown>> {
  return {
    Image: spec.image,
    Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
    Labels: spec.labels,
    ...(spec.command === undefined ? {} : { Cmd: spec.command }),
    ...(spec.entrypoint === undefined ? {} : { Entrypoint: spec.entrypoint }),
    ...(spec.workingDir === undefined ? {} : { WorkingDir: spec.workingDir }),
    ExposedPorts: Object.fromEntries(spec.ports.map((port) => [portKey(port), {}])),
    HostConfig: {
      RestartPolicy: { Name: spec.restart, MaximumRetryCount: 0 },
      ...(spec.cpus === undefined ? {} : { NanoCpus: Math.round(spec.cpus * 1e9) }),
      ...(spec.memoryBytes === undefined ? {} : { Memory: Math.round(spec.memoryBytes) }),
      PortBindings: buildPortBindings(spec.ports),
      ...(spec.storageSize === undefined ? {} : { StorageOpt: { size: spec.storageSize } }),
      Mounts: [...spec.volumes.map(buildMount), ...(spec.binds ?? []).map(buildBind)],
      LogConfig: { Type: 'json-file', Config: buildLogLimits(spec.logs) },
      ...(spec.networkMode === undefined ? {} : { NetworkMode: spec.networkMode }),
      ...(spec.network === undefined ? {} : { NetworkMode: spec.network.name }),
    },
    ...(spec.network === undefined
      ? {}
      : {
          NetworkingConfig: {
            EndpointsConfig: { [spec.network.name]: { Aliases: spec.network.aliases } },
          },
        }),
  };
}

function refuseVariable(name: string, value: string): string | undefined {
  if (name === '') return 'has no name';
  if (name.includes('=')) return 'has "=" in its name';
  if (name.includes('\0')) return 'has a NUL character in its name';
  if (value.includes('\0')) return 'has a NUL character in its value';
  // A lone surrogate has no bytes: JSON would carry it, and the engine put a replacement character in its place.
  if (/\p{Surrogate}/u.test(name + value)) return 'is not valid Unicode';
  const bytes = variableBytes(name, value);
  if (bytes <= maxVariableBytes) return undefined;
  return `has ${bytes} bytes with its name, more than the ${maxVariableBytes} that a process can be given`;
}

/** What stands behind a `=` in a name is most likely a value. */
function showName(name: string): string {
  const [shown = ''] = name.split('=');
  return JSON.stringify(shown.slice(0, 100));
}

function variableBytes(name: string, value: string): number {
  return Buffer.byteLength(name) + 1 + Buffer.byteLength(value);
}

function buildPortBindings(
  ports: ContainerSpec['ports'],
): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  for (const port of ports) {
    const binding = { HostIp: port.hostIp, HostPort: String(port.hostPort) };
    bindings[portKey(port)] = [...(bindings[portKey(port)] ?? []), binding];
  }
  return bindings;
}

function portKey(port: { containerPort: number }): string {
  return `${port.containerPort}/tcp`;
}

function buildLogLimits(logs: ContainerSpec['logs']): Readonly<Record<string, string>> {
  // The engine's own defaults, which may rotate, hold for what is left out; it takes no zero for no limit.
  if (logs === 'whole') return { 'max-size': '1000p', 'max-file': '2' };
  return { 'max-size': String(logs.maxSizeBytes), 'max-file': String(logs.maxFiles) };
}

function buildBind({ source, target, readOnly }: BindMount): Readonly<Record<string, unknown>> {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: readOnly };
}

function buildMount(volume: ContainerSpec['volumes'][number]): Readonly<Record<string, unknown>> {
  return {
    Type: 'volume',
    Source: volume.name,
    Target: volume.path,
    ...(volume.labels === undefined ? {} : { VolumeOptions: { Labels: volume.labels } }),
  };
}
