// A node in memory, as far as planning goes: containers that start, fail, drain and stop when the planner's steps say so.
// It follows the handlers' bookkeeping, so that whole rollouts run in a millisecond and can be cut at any point.
import { emptyBackups } from '../../src/lib/backup/state.ts';
import { type DesiredService, serviceKey } from '../../src/lib/cluster/wire.ts';
import type {
  Facts,
  ProbeState,
  Replica,
  ReplicaRecord,
  ServiceRecord,
} from '../../src/lib/reconcile/facts.ts';
import { type Plan, planReconcile } from '../../src/lib/reconcile/plan.ts';
import { nextFailure } from '../../src/lib/reconcile/release.ts';
import type { Step, StepOf } from '../../src/lib/reconcile/steps.ts';
import { WorldEdge } from './world-edge.ts';
import {
  aContainer,
  acknowledgedRecord,
  drainRecord,
  startingRecord,
  stoppingRecord,
} from './world-records.ts';
import { applyRunStep } from './world-runs.ts';

export type WorldOptions = {
  /** Images whose containers exit at once. */
  crashing?: ReadonlySet<string>;
  /** Images whose containers run and never pass a probe. */
  sick?: ReadonlySet<string>;
  drainFloorMs?: number;
};

const node = { nodeId: 'web-1', privateIp: '10.0.0.1', probeHost: '127.0.0.1' };

export class World {
  now = new Date('2026-06-04T03:00:00.000Z');
  desired: DesiredService[] = [];
  rejected: { index: number; key: string | undefined; reason: string; ingress: undefined }[] = [];
  known = true;
  containers = new Map<string, Replica>();
  services: Record<string, ServiceRecord> = {};
  cron: Facts['cron'] = { fires: {} };
  diesAfterRecord = false;
  probes = new Map<string, ProbeState>();
  stopsAsked = new Set<string>();
  rechecked = new Set<string>();
  announced: string[] = [];
  holds: Facts['holds'] = [];
  routingPublished = true;
  edge = new WorldEdge();
  /** Every step taken, as `action key#index`. */
  log: string[] = [];
  readonly options: WorldOptions;
  private nextId = 1;

  constructor(options: WorldOptions = {}) {
    this.options = options;
  }

  facts(): Facts {
    return {
      now: this.now,
      node: { ...node, drainFloorMs: this.options.drainFloorMs ?? 3000 },
      desired: this.known
        ? {
            kind: 'document',
            updatedAt: '2026-06-04T03:00:00.000Z',
            services: this.desired,
            rejected: this.rejected,
          }
        : { kind: 'none', reason: 'it cannot be read' },
      replicas: [...this.containers.values()],
      strangers: [],
      record: { services: this.services },
      cron: this.cron,
      backups: emptyBackups,
      finishedAt: new Map(),
      ports: {},
      routingPublished: this.routingPublished,
      shards: this.edge.published,
      applied: this.edge.answer(this.services, [...this.containers.values()]),
      probes: this.probes,
      holds: this.holds,
      announcedRemovals: this.announced,
      busy: new Set(),
      stopsAsked: this.stopsAsked,
      rechecked: this.rechecked,
    };
  }

  plan(options: { only?: string; allowRemoval?: boolean } = {}): Plan {
    const { only, allowRemoval = false } = options;
    if (this.routingPublished) this.edge.publish(this.facts());
    return planReconcile(this.facts(), { ...(only === undefined ? {} : { only }), allowRemoval });
  }

  /** The next steps as `action key#index`. */
  steps(options: Parameters<World['plan']>[0] = {}): string[] {
    return this.plan(options).services.flatMap(({ steps }) => steps.map(describeStep));
  }

  /** The process is gone and what it had only in memory with it. */
  crash(): void {
    this.probes.clear();
    this.stopsAsked.clear();
    this.rechecked.clear();
  }

  /** Names of replicas that are routed to. */
  serving(key: string): string[] {
    const records = this.services[key]?.replicas ?? {};
    return [...this.containers.values()]
      .filter((replica) => serviceKey(replica) === key && replica.state === 'running')
      .filter(({ name }) => records[name] === undefined)
      .map(({ name }) => name);
  }

  running(key: string): Replica[] {
    return [...this.containers.values()].filter(
      (replica) => serviceKey(replica) === key && replica.state === 'running',
    );
  }

  add(service: DesiredService, index: number, overrides: Partial<Replica> = {}): Replica {
    const made = { containerId: `c${this.nextId++}`, createdAt: this.now };
    const replica = aContainer(service, index, { ...made, ...overrides });
    this.containers.set(replica.name, replica);
    return replica;
  }

  /** Takes the steps of one look, or moves the clock to what is waited for. False when nothing is left. */
  advance(plan: Plan = this.plan()): boolean {
    const steps = plan.services.flatMap((service) => service.steps);
    const waits = plan.services.flatMap((service) => service.waits);
    for (const { steps: turn } of plan.services) this.takeTurn(turn);
    if (steps.length > 0) return true;
    if (waits.length === 0) return false;
    this.now = new Date(Math.max(this.now.getTime() + 1, ...waits.map(({ until }) => until.getTime())));
    return true;
  }

  /** Looks until nothing is left; throws if that does not come. */
  settle(watch: (world: World) => void = () => {}): void {
    for (let looks = 0; looks < 500; looks += 1) {
      if (!this.advance()) return;
      watch(this);
    }
    throw new Error(`the world does not settle: ${this.log.slice(-12).join(' | ')}`);
  }

  /** As in the real thing, the first step that fails ends the service's turn. */
  private takeTurn(steps: readonly Step[]): void {
    for (const step of steps) {
      this.log.push(describeStep(step));
      if (!this.apply(step)) return;
    }
  }

  apply(step: Step): boolean {
    switch (step.action) {
      case 'createReplica':
        this.create(step.args);
        return true;
      case 'startReplica':
        this.setState(step.args.replica.name, this.stateAfterStart(step.args.service));
        this.record(step.key, step.args.replica.name, startingRecord(step.args, this.now));
        return true;
      case 'probeReplica':
        this.probe(
          step.args.replica.name,
          !this.options.sick?.has(step.args.replica.image),
          step.args.service,
        );
        return true;
      case 'checkReplica':
        this.probes.set(step.args.replica.name, { passes: 1, nextAt: this.now, last: 'it has stayed up' });
        return true;
      case 'admitReplica':
        this.record(step.key, step.args.replica.name, undefined);
        this.setFailure(step.key, step.args.release, undefined);
        return true;
      case 'abortReplica':
        this.setFailure(step.key, step.args.release, step.args.why);
        this.remove(step.key, step.args.replica.name);
        return false;
      case 'drainReplica':
        this.record(step.key, step.args.replica.name, drainRecord(step.reason, null, this.now));
        return true;
      case 'waitForDrain':
        this.record(step.key, step.args.replica.name, drainRecord(step.reason, step.args.drainMs, this.now));
        return true;
      case 'acknowledgeDrain':
        this.record(
          step.key,
          step.args.replica.name,
          acknowledgedRecord(this.recordOf(step), step.args.drainMs, this.now),
        );
        return true;
      case 'stopReplica':
        this.stop(step.key, step.args);
        return true;
      case 'removeReplica':
        this.remove(step.key, step.args.replica.name);
        return true;
      case 'resumeReplica':
        this.setState(step.args.replica.name, 'running');
        this.record(step.key, step.args.replica.name, undefined);
        return true;
      case 'forgetReplica':
        this.record(step.key, step.args.name, undefined);
        return true;
      case 'recheckImage':
        this.rechecked.add(`${step.key} ${step.args.release}`);
        return true;
      case 'joinNetwork':
        this.containers.set(step.args.replica.name, {
          ...step.args.replica,
          networks: [`launchpadnet_${step.args.replica.project}`],
        });
        return true;
      case 'prepareImage':
        return true;
      case 'armSchedule':
      case 'skipFire':
      case 'startRun':
      case 'forgetSchedule':
      case 'startJob':
        return applyRunStep(this, step);
    }
  }

  private create(args: Extract<Step, { action: 'createReplica' }>['args']): void {
    const replica = this.add(args.service, args.index, { state: this.stateAfterStart(args.service) });
    this.record(serviceKey(replica), replica.name, startingRecord(args, this.now));
  }

  private stateAfterStart(service: DesiredService): Replica['state'] {
    return this.options.crashing?.has(service.image) ? 'exited' : 'running';
  }

  private probe(name: string, passed: boolean, service: DesiredService): void {
    const passes = passed ? (this.probes.get(name)?.passes ?? 0) + 1 : 0;
    const nextAt = new Date(this.now.getTime() + (service.healthCheck?.intervalMs ?? 2000));
    this.probes.set(name, { passes, nextAt, last: passed ? 'got 200' : 'got 500: no database' });
  }

  private stop(key: string, args: Extract<Step, { action: 'stopReplica' }>['args']): void {
    this.record(key, args.replica.name, stoppingRecord(args, this.now));
    this.stopsAsked.add(args.replica.name);
    this.setState(args.replica.name, 'exited');
  }

  private setState(name: string, state: Replica['state']): void {
    const replica = this.containers.get(name);
    if (replica !== undefined) this.containers.set(name, { ...replica, state, statusText: `is ${state}` });
  }

  private remove(key: string, name: string): void {
    this.containers.delete(name);
    this.probes.delete(name);
    this.stopsAsked.delete(name);
    this.record(key, name, undefined);
  }

  private recordOf({ key, args }: StepOf<'acknowledgeDrain'>): ReplicaRecord | undefined {
    return this.services[key]?.replicas[args.replica.name];
  }

  private record(key: string, name: string, record: ReplicaRecord | undefined): void {
    const service = this.services[key] ?? { replicas: {}, failures: {} };
    const { [name]: _, ...others } = service.replicas;
    const replicas = record === undefined ? others : { ...others, [name]: record };
    this.services = { ...this.services, [key]: { ...service, replicas } };
  }

  private setFailure(key: string, release: string, error: string | undefined): void {
    const service = this.services[key] ?? { replicas: {}, failures: {} };
    const { [release]: earlier, ...others } = service.failures;
    const failures =
      error === undefined ? others : { ...others, [release]: nextFailure(earlier, { now: this.now, error }) };
    this.services = { ...this.services, [key]: { ...service, failures } };
  }
}

function describeStep({ action, key, index }: Step): string {
  return `${action} ${key}${index === undefined ? '' : `#${index}`}`;
}

/** A world that has reached its desired state, with an empty log. */
export function settledWorld(service: DesiredService): World {
  const world = new World();
  world.desired = [service];
  world.settle();
  world.log = [];
  return world;
}
