// Faults of ploy's server as data: what happens to which requests, by count or by seeded chance.
import { createRandom } from '../random.ts';
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

export type PloyFaults = {
  /** The first rule that fits a request is the one that it meets. Gives a function that takes the rule away. */
  add(fault: PloyFault): () => void;
  clear(): void;
  /** How often each kind was met. */
  readonly met: Readonly<Record<string, number>>;
  /** For the server. */
  next(route: PloyRoute, path: string): PloyFaultKind | undefined;
};

export function createFaults(seed: number): PloyFaults {
  const random = createRandom(seed);
  const met: Record<string, number> = {};
  let rules: { fault: PloyFault; left: number; skip: number }[] = [];
  const isHit = (rule: (typeof rules)[number], route: PloyRoute, path: string): boolean => {
    const { fault } = rule;
    if (rule.left <= 0 || (fault.route !== 'any' && fault.route !== route)) return false;
    if (fault.jobId !== undefined && !path.includes(fault.jobId)) return false;
    if (rule.skip > 0) {
      rule.skip -= 1;
      return false;
    }
    return fault.oneIn === undefined || random.below(fault.oneIn) === 0;
  };
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
    clear: () => {
      rules = [];
    },
    met,
    next: (route, path) => {
      const rule = rules.find((one) => isHit(one, route, path));
      if (rule === undefined) return undefined;
      rule.left -= 1;
      // A claim that is cut would be lost as well.
      if (rule.fault.kind === 'cut' && route === 'claim') return { kind: 'reset' };
      const name = `${route} ${rule.fault.kind}${isCommitted(rule.fault) ? ' after' : ''}`;
      met[name] = (met[name] ?? 0) + 1;
      return rule.fault;
    },
  };
}

export function isCommitted(fault: PloyFaultKind): boolean {
  return 'committed' in fault && fault.committed === true;
}
