// Faults of ploy's server as data: what happens to which requests, by count or by seeded chance.
import { createRandom, type Random } from '../random.ts';
import type { PloyRoute } from './model.ts';

export type PloyFaultKind =
  /** Answered so, without or with having done what was asked. */
  | { kind: 'answer'; status: number; text?: string; committed?: boolean }
  /** No answer, until the client leaves. */
  | { kind: 'silence'; committed?: boolean }
  | { kind: 'reset'; committed?: boolean }
  /** The true answer, late. */
  | { kind: 'slow'; ms: number }
  /** The head of the true answer and half of its body, then a reset. */
  | { kind: 'cut' };

export type PloyFault = PloyFaultKind & {
  route: PloyRoute | 'any';
  /** Only of this job. */
  jobId?: string;
  /** So many requests; all, where it is not said. */
  times?: number;
  /** So many requests are let through first. */
  skip?: number;
  /** One request in so many, by chance. */
  oneIn?: number;
};

/** Of all requests, whatever they ask for, one in so many meets one of the kinds that are possible there, by their weights. */
export type PloyFaultMix = { oneIn: number; kinds: readonly (PloyFaultKind & { weight: number })[] };

export type PloyFaults = {
  /** Looked at where no rule fits. */
  mix(mix: PloyFaultMix): void;
  /** The first rule that fits a request is the one that it meets. Gives a function that takes the rule away. */
  add(fault: PloyFault): () => void;
  clear(): void;
  /** How many requests of each route there were, with or without a fault. */
  readonly seen: Readonly<Record<string, number>>;
  /** How often each kind was met. */
  readonly met: Readonly<Record<string, number>>;
  /** For the server. */
  next(route: PloyRoute, path: string): PloyFaultKind | undefined;
};

export function createFaults(seed: number): PloyFaults {
  const random = createRandom(seed);
  const met: Record<string, number> = {};
  const seen: Record<string, number> = {};
  let rules: Rule[] = [];
  let mixed: PloyFaultMix | undefined;
  return {
    add: (fault) => {
      const rule = { fault, left: fault.times ?? Number.POSITIVE_INFINITY, skip: fault.skip ?? 0 };
      if (isCommitted(fault) && (fault.route === 'claim' || fault.route === 'any')) {
        throw new Error(
          'a claim that is lost after it is committed is lost for good: nothing could be tested by it',
        );
      }
      rules.push(rule);
      return () => {
        rules = rules.filter((one) => one !== rule);
      };
    },
    mix: (mix) => {
      mixed = mix;
    },
    clear: () => {
      rules = [];
      mixed = undefined;
    },
    ...{ met, seen },
    next: (route, path) => {
      increment(seen, route);
      const rule = rules.find((one) => isHit(one, { route, path, random }));
      if (rule !== undefined) rule.left -= 1;
      const fault = rule?.fault ?? pickMixed(mixed, route, random);
      if (fault === undefined) return undefined;
      // A claim that is cut would be lost as well.
      if (fault.kind === 'cut' && route === 'claim') return { kind: 'reset' };
      increment(met, `${route} ${nameOf(fault)}`);
      return fault;
    },
  };
}

type Rule = { fault: PloyFault; left: number; skip: number };

function isHit(rule: Rule, asked: { route: PloyRoute; path: string; random: Random }): boolean {
  const { fault } = rule;
  const { route, path, random } = asked;
  if (rule.left <= 0 || (fault.route !== 'any' && fault.route !== route)) return false;
  if (fault.jobId !== undefined && !path.includes(fault.jobId)) return false;
  if (rule.skip > 0) {
    rule.skip -= 1;
    return false;
  }
  return fault.oneIn === undefined || random.below(fault.oneIn) === 0;
}

function pickMixed(
  mix: PloyFaultMix | undefined,
  route: PloyRoute,
  random: Random,
): PloyFaultKind | undefined {
  if (mix === undefined || random.below(mix.oneIn) !== 0) return undefined;
  const possible = mix.kinds.filter(
    (fault) => route !== 'claim' || !(isCommitted(fault) || fault.kind === 'cut'),
  );
  return random.pick(possible.flatMap((fault) => Array.from({ length: fault.weight }, () => fault)));
}

function nameOf(fault: PloyFaultKind): string {
  const status = fault.kind === 'answer' ? ` ${fault.status}` : '';
  return `${fault.kind}${status}${isCommitted(fault) ? ' after' : ''}`;
}

function increment(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

export function isCommitted(fault: PloyFaultKind): boolean {
  return 'committed' in fault && fault.committed === true;
}
