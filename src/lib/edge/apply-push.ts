// Gives Caddy the document of the routes, at most once in two seconds, and tells why.
import { UnavailableError } from '../errors.ts';
import type { EdgeChange } from './balancer.ts';
import type { EdgeDocument } from './documents.ts';
import { explainPush } from './explain.ts';
import type { EdgeFacts } from './facts.ts';
import type { EdgePlan } from './plan.ts';
import { pushCaddy } from './push.ts';
import { findRefusal } from './refusal.ts';
import type { Route } from './route.ts';
import type { EdgeSession } from './session.ts';

export type Pushed = {
  /** Absent where Caddy had the document already. */
  change?: EdgeChange;
  /** Of the text that stands for the document; absent where Caddy could not be asked afterwards. */
  textHash?: string;
};

const pauseMs = 2_000;

/** Throws StepError where Caddy refuses it, UnavailableError where it does not answer. */
export async function applyPush(session: EdgeSession, facts: EdgeFacts, plan: EdgePlan): Promise<Pushed> {
  const { live, memory } = facts;
  if (plan.push === 'no' && live.kind === 'read') return { textHash: live.textHash };
  if (live.kind === 'unreadable' && isNoTaker(live.error)) throw live.error;
  const document = session.balancer.buildCaddyDocument(plan.routes);
  const read = live.kind === 'read' ? { text: live.text, ...(live.etag && { etag: live.etag }) } : undefined;
  const { edge, ctx } = session;
  const beforeSend = async (): Promise<void> => {
    const refusal = findRefusal(facts, plan.inputs);
    if (refusal !== undefined) throw refusal;
    await session.balancer.requireReady();
    await pausePush(session, memory);
  };
  const request = {
    admin: edge.caddy.admin,
    document,
    live: read,
    beforeSend,
    signal: ctx.signal,
    log: ctx.log,
  };
  const { sent, textHash } = await pushCaddy(request);
  return {
    ...(sent && { change: describePush(session, facts, plan.routes) }),
    ...(textHash && { textHash }),
  };
}

export function describePush({ edge }: EdgeSession, facts: EdgeFacts, routes: readonly Route[]): EdgeChange {
  const subject = `caddy at ${new URL(edge.caddy.admin).host}`;
  return { action: 'push', subject, reason: explainPush(facts, routes) };
}

/** What does not answer a question does not take a document either, and what answers with no configuration is no Caddy. */
function isNoTaker(error: unknown): boolean {
  return error instanceof UnavailableError && ['deadline', 'not-caddy'].includes(error.code);
}

/** A last push that lies ahead of a clock that was set back counts as long ago. */
async function pausePush({ ctx }: EdgeSession, { lastReloadAt }: EdgeDocument): Promise<void> {
  const ageMs = ctx.clock.now().getTime() - Date.parse(lastReloadAt ?? '');
  if (ageMs >= 0 && ageMs < pauseMs) await ctx.clock.sleep(pauseMs - ageMs, ctx.signal);
}
