// The engine's JSON into our words. Pure, and tolerant: other versions and podman leave fields out, add some, or give null
// for an empty list. Only an answer without an identity is refused (UnexpectedAnswer).
import { UnexpectedAnswer } from './errors.ts';
import type {
  ContainerDetails,
  ContainerState,
  ContainerSummary,
  ImageIdentity,
  ImageSummary,
  PublishedPort,
  PullProgress,
  VolumeSummary,
} from './types.ts';

type RawRecord = Readonly<Record<string, unknown>>;

export function parseContainerList(raw: unknown): ContainerSummary[] {
  return requireList(raw, 'containers').map((entry) => {
    const row = toRecord(entry);
    return {
      id: requireText(row['Id'], 'container id'),
      name: summaryName(row['Names']),
      image: toText(row['Image']),
      imageId: toText(row['ImageID']),
      labels: toLabels(row['Labels']),
      state: toState(row['State']),
      statusText: toText(row['Status']),
      createdAt: new Date(toNumber(row['Created']) * 1000),
      ports: toPorts(row['Ports']),
      networks: Object.keys(toRecord(toRecord(row['NetworkSettings'])['Networks'])),
      volumes: toList(row['Mounts'])
        .map(toRecord)
        .filter(isVolume)
        .map((mount) => toText(mount['Name'])),
    };
  });
}

export function parseContainerDetails(raw: unknown): ContainerDetails {
  const details = toRecord(raw);
  const state = toRecord(details['State']);
  const config = toRecord(details['Config']);
  return {
    id: requireText(details['Id'], 'container id'),
    name: toText(details['Name']).replace(/^\//, ''),
    state: toState(state['Status']),
    exitCode: toNumber(state['ExitCode']),
    error: toText(state['Error']),
    oomKilled: state['OOMKilled'] === true,
    startedAt: toInstant(state['StartedAt']),
    finishedAt: toInstant(state['FinishedAt']),
    restartCount: toNumber(details['RestartCount']),
    labels: toLabels(config['Labels']),
    env: toList(config['Env']).map(toText),
    image: toText(config['Image']),
    imageId: toText(details['Image']),
  };
}

/** Names of the networks that an inspected container has joined. */
export function parseContainerNetworks(raw: unknown): string[] {
  return Object.keys(toRecord(toRecord(toRecord(raw)['NetworkSettings'])['Networks']));
}

export function parseCreated(raw: unknown): { id: string } {
  return { id: requireText(toRecord(raw)['Id'], 'container id') };
}

/** The answer of `wait`: the exit code, and the engine's reason where it could not wait. */
export function parseWait(raw: unknown): { exitCode: number; error: string } {
  const answer = toRecord(raw);
  if (typeof answer['StatusCode'] !== 'number') throw new UnexpectedAnswer('no exit code');
  return { exitCode: answer['StatusCode'], error: toText(toRecord(answer['Error'])['Message']) };
}

export function parseImageList(raw: unknown): ImageSummary[] {
  return requireList(raw, 'images').map((entry) => {
    const row = toRecord(entry);
    const references = [...toList(row['RepoTags']), ...toList(row['RepoDigests'])].map(toText);
    return {
      id: requireText(row['Id'], 'image id'),
      references: references.filter(isReference),
      sizeBytes: toNumber(row['Size']),
      createdAt: new Date(toNumber(row['Created']) * 1000),
    };
  });
}

export function parseImageIdentity(raw: unknown): ImageIdentity {
  const image = toRecord(raw);
  return {
    id: requireText(image['Id'], 'image id'),
    digests: toList(image['RepoDigests']).map(toText).filter(isReference),
  };
}

export function parseVolumeList(raw: unknown): VolumeSummary[] {
  // `{"Volumes": null}` is an empty list, `{}` is some other answer.
  if (!('Volumes' in toRecord(raw))) throw new UnexpectedAnswer('no list of volumes');
  return toList(toRecord(raw)['Volumes']).map((entry) => {
    const row = toRecord(entry);
    return {
      name: requireText(row['Name'], 'volume name'),
      labels: toLabels(row['Labels']),
      createdAt: toInstant(row['CreatedAt']),
      mountpoint: toText(row['Mountpoint']),
    };
  });
}

export function parseNetworkName(raw: unknown): string {
  return requireText(toRecord(raw)['Name'], 'network name');
}

/** The oldest API version the engine accepts; undefined where it does not say. */
export function parseMinimumVersion(raw: unknown): string | undefined {
  const version = toRecord(raw)['MinAPIVersion'];
  return typeof version === 'string' && version !== '' ? version : undefined;
}

/** One line of a pull: what went wrong, or how far a layer is. An `error` can come after the status 200. */
export function parsePullLine(raw: unknown): { error: string } | { progress: PullProgress } {
  const line = toRecord(raw);
  const error = toText(line['error']) || toText(toRecord(line['errorDetail'])['message']);
  if (error !== '') return { error };
  const detail = toRecord(line['progressDetail']);
  return {
    progress: {
      layer: toText(line['id']),
      status: toText(line['status']) || toText(line['stream']).trim(),
      ...(typeof detail['current'] === 'number' ? { currentBytes: detail['current'] } : {}),
      ...(typeof detail['total'] === 'number' ? { totalBytes: detail['total'] } : {}),
    },
  };
}

/** The sentence in an error answer; undefined where it is none of an engine's. */
export function parseErrorMessage(raw: unknown): string | undefined {
  const message = toRecord(raw)['message'];
  return typeof message === 'string' ? message : undefined;
}

/** An image that lost its name is listed as `<none>:<none>`. */
function isReference(text: string): boolean {
  return text !== '' && !text.includes('<none>');
}

/** Legacy links give a container further names below others' (`/web/db`): its own has one slash. */
function summaryName(raw: unknown): string {
  const names = toList(raw).map((name) => toText(name).replace(/^\//, ''));
  return names.find((name) => !name.includes('/')) ?? names[0] ?? '';
}

/** podman's own words for states, beside Docker's. */
const states: Readonly<Record<string, ContainerState>> = {
  created: 'created',
  configured: 'created',
  initialized: 'created',
  running: 'running',
  stopping: 'running',
  paused: 'paused',
  restarting: 'restarting',
  removing: 'removing',
  exited: 'exited',
  stopped: 'exited',
  dead: 'dead',
};

/** A state that we do not know counts as not yet running: nothing is concluded from it. */
function toState(raw: unknown): ContainerState {
  return states[toText(raw).toLowerCase()] ?? 'created';
}

function toPorts(raw: unknown): PublishedPort[] {
  return toList(raw)
    .map(toRecord)
    .filter((port) => toNumber(port['PublicPort']) > 0)
    .map((port) => ({
      containerPort: toNumber(port['PrivatePort']),
      hostPort: toNumber(port['PublicPort']),
      hostIp: toText(port['IP']),
    }));
}

function isVolume(mount: RawRecord): boolean {
  return mount['Type'] === 'volume' && toText(mount['Name']) !== '';
}

/** Go's zero time, year 1, stands for never. */
function toInstant(raw: unknown): Date | undefined {
  const instant = new Date(toText(raw));
  return Number.isNaN(instant.getTime()) || instant.getUTCFullYear() <= 1 ? undefined : instant;
}

function toLabels(raw: unknown): Record<string, string> {
  const entries = Object.entries(toRecord(raw)).filter(([, value]) => typeof value === 'string');
  // Object.fromEntries, as an assignment would lose a label named `__proto__`.
  return Object.fromEntries(entries) as Record<string, string>;
}

function toRecord(raw: unknown): RawRecord {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw) ? (raw as RawRecord) : {};
}

function toList(raw: unknown): readonly unknown[] {
  return Array.isArray(raw) ? raw : [];
}

function toText(raw: unknown): string {
  return typeof raw === 'string' ? raw : '';
}

function toNumber(raw: unknown): number {
  return typeof raw === 'number' && Number.isFinite(raw) ? raw : 0;
}

function requireList(raw: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(raw)) throw new UnexpectedAnswer(`no list of ${what}`);
  return raw;
}

function requireText(raw: unknown, what: string): string {
  if (typeof raw !== 'string' || raw === '') throw new UnexpectedAnswer(`no ${what}`);
  return raw;
}
