// What we ask of a container engine and what it answers, in our words. parse.ts turns the engine's JSON into these.

export type ContainerState = 'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead';

export type PublishedPort = { containerPort: number; hostPort: number; hostIp: string };

/** One row of the engine's list: all that a tick needs, for one request. */
export type ContainerSummary = {
  id: string;
  name: string;
  /** The reference the container was created from. */
  image: string;
  imageId: string;
  labels: Readonly<Record<string, string>>;
  state: ContainerState;
  /** The engine's words, `Up 3 hours (healthy)`, `Exited (1) 5 seconds ago`. */
  statusText: string;
  createdAt: Date;
  ports: readonly PublishedPort[];
  networks: readonly string[];
  /** Names of mounted volumes. */
  volumes: readonly string[];
};

export type ContainerDetails = {
  id: string;
  name: string;
  state: ContainerState;
  exitCode: number;
  error: string;
  oomKilled: boolean;
  /** Undefined where the engine gives its zero time. */
  startedAt: Date | undefined;
  finishedAt: Date | undefined;
  restartCount: number;
  labels: Readonly<Record<string, string>>;
  env: readonly string[];
  image: string;
  imageId: string;
};

export type BindMount = { source: string; target: string; readOnly: boolean };

export type ContainerSpec = {
  name: string;
  image: string;
  env: Readonly<Record<string, string>>;
  labels: Readonly<Record<string, string>>;
  command?: readonly string[];
  entrypoint?: readonly string[];
  workingDir?: string;
  /** Fractions of a CPU: 0.5 is half of one. */
  cpus?: number;
  memoryBytes?: number;
  /** Of the container's own layer, `10G`; not every engine can. */
  storageSize?: string;
  restart: 'no' | 'unless-stopped';
  network?: { name: string; aliases: readonly string[] };
  /** Instead of `network`: also `host`, `none` or `container:ID`. */
  networkMode?: string;
  ports: readonly PublishedPort[];
  volumes: readonly { name: string; path: string; labels?: Readonly<Record<string, string>> }[];
  /** Files and directories of this machine. */
  binds?: readonly BindMount[];
  /** Bounded, or whole where the log is what somebody waits for: it goes with the container. */
  logs: { maxSizeBytes: number; maxFiles: number } | 'whole';
};

export type ImageSummary = { id: string; references: readonly string[]; sizeBytes: number; createdAt: Date };
export type ImageIdentity = { id: string; digests: readonly string[] };

export type VolumeSummary = {
  name: string;
  labels: Readonly<Record<string, string>>;
  /** By some engines the last change of the volume's directory, as when a server in it was stopped. */
  createdAt: Date | undefined;
  /** Where the volume lies on the engine's machine; empty for some drivers. */
  mountpoint: string;
};

/** What a container has used so far; zeroes are what the engine does not tell. */
export type ContainerUsage = { cpuNs: number; memoryBytes: number };

/** Some bytes of a container's output, as it was recorded. Not to be kept: the memory may be used again. */
export type LogPart = { stream: 'stdout' | 'stderr'; bytes: Uint8Array };

/** Progress of a pull, for people: `layer` is the engine's short id. */
export type PullProgress = { layer: string; status: string; currentBytes?: number; totalBytes?: number };

export type FollowOptions = { signal: AbortSignal; onPart(part: LogPart): Promise<void> | void };

export type Engine = {
  /** The API version in use; known after the first answer. */
  readonly apiVersion: string | undefined;
  /** Requests sent by this client so far. */
  readonly requestCount: number;
  listContainers(filter: { labels: readonly string[] }): Promise<readonly ContainerSummary[]>;
  inspectContainer(id: string): Promise<ContainerDetails | undefined>;
  /** The engine's own document, for a person to read. */
  inspectContainerRaw(id: string): Promise<unknown>;
  /** Undefined where the container is gone. Of one that has ended it is zeroes. */
  fetchUsage(id: string, signal: AbortSignal): Promise<ContainerUsage | undefined>;
  /** What the container has written beside its mounts; it may have ended. Undefined where it is gone. */
  fetchLayerBytes(id: string): Promise<number | undefined>;
  /** Throws InputError for what the engine refuses, NameTakenError for a name in use, ImageMissingError. */
  createContainer(spec: ContainerSpec): Promise<{ id: string }>;
  /** Starting what runs is success. */
  startContainer(id: string): Promise<void>;
  /** Sends the stop signal, waits up to the grace, kills. Stopping what is stopped or gone is success. */
  stopContainer(id: string, graceSeconds: number): Promise<void>;
  /** Signalling what does not run or is gone is success. */
  killContainer(id: string, signal: string): Promise<void>;
  /** Resolves with the exit code once the container is not running. */
  waitContainer(id: string): Promise<number>;
  /** Removes the container, and of its volumes at most those without a name. Removing what is gone is success. */
  removeContainer(id: string, options: { force: boolean; anonymousVolumes?: boolean }): Promise<void>;
  /** Under a lock: an engine asked by two processes at once makes two networks of one name. */
  ensureNetwork(name: string, labels: Readonly<Record<string, string>>): Promise<void>;
  /** Joining a network twice is success. */
  connectNetwork(network: string, containerId: string, aliases: readonly string[]): Promise<void>;
  removeNetwork(name: string): Promise<void>;
  listVolumes(filter: { namePrefix: string }): Promise<readonly VolumeSummary[]>;
  removeVolume(name: string): Promise<void>;
  /** Undefined where it is not on this machine. Without digests it was built or imported here: no registry knows it. */
  inspectImage(reference: string): Promise<ImageIdentity | undefined>;
  /** Ends with the signal; without one of its own, with the client's. */
  pullImage(
    reference: string,
    onProgress?: (progress: PullProgress) => void,
    signal?: AbortSignal,
  ): Promise<void>;
  listImages(): Promise<readonly ImageSummary[]>;
  removeImage(reference: string): Promise<void>;
  /** The last lines of stdout and stderr, merged as the engine recorded them. */
  containerLogs(id: string, options: { tailLines: number }): Promise<string>;
  /**
   * The whole log from its start, and on until the container has ended. No more is read while `onPart` is busy. Ends as well
   * when the connection does: whoever needs all of it asks whether the container has ended.
   */
  followLogs(id: string, options: FollowOptions): Promise<void>;
  /** Ends kept connections, so that the process can exit. */
  close(): void;
};
