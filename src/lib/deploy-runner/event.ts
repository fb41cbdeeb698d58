// The event that tells the control side how an action ended, and its file's name. Field names are those of the events that the
// control side knows; `payload.key` is ours and tells two approvals of one id apart.
import * as z from 'zod';
import { InputError } from '../errors.ts';
import { optional, parseWhole } from './fields.ts';
import { actionIdPattern, nodeNamePattern, serviceNamePattern } from './names.ts';

export type ActionResult = {
  node: string;
  actionId: string;
  /** As asked for: another one than redeploy is refused. */
  actionType: string;
  /** Undefined where nobody could tell which. */
  service?: string;
  /** Undefined where the event is the seed's own runner's. */
  key?: string;
  status: 'completed' | 'failed';
  /** Undefined where no script ended by itself. */
  exitCode?: number;
  reason?: string;
  /** ISO instants. Undefined: nothing was started. */
  startedAt?: string;
  finishedAt: string;
  /** The end of what the script said. */
  outputTail?: string;
};

export const maxEventBytes = 256 * 1024;

/** One line of JSON. */
export function buildResultEvent(result: ActionResult): string {
  const { startedAt = result.finishedAt } = result;
  const event = {
    timestamp: result.finishedAt,
    node: result.node,
    type: 'action_result',
    severity: result.status === 'completed' ? 'info' : 'error',
    source: 'deploy-runner',
    service: result.service ?? '',
    correlation_id: result.actionId,
    payload: {
      action_id: result.actionId,
      action_type: result.actionType,
      status: result.status,
      exit_code: result.exitCode ?? null,
      reason: result.reason,
      started_at: startedAt,
      finished_at: result.finishedAt,
      // A clock that was set back meanwhile makes no deploy of negative length.
      duration_seconds: Math.max(0, Date.parse(result.finishedAt) - Date.parse(startedAt)) / 1000,
      output_tail: result.outputTail,
      key: result.key,
    },
  };
  return `${JSON.stringify(event)}\n`;
}

const epochDigits = 13;

/** Later ones sort after earlier ones. */
export function eventFileName(node: string, epochMs: number, actionId: string): string {
  return `evt-${node}-${String(epochMs).padStart(epochDigits, '0')}-action_result-${actionId}.json`;
}

export type EventName = { node: string; epochMs: number; actionId: string };

/** Undefined where the file is no result's. */
export function parseEventFileName(name: string): EventName | undefined {
  const match = /^evt-(.+)-(\d{13,16})-action_result-([a-z0-9-]+)\.json$/.exec(name);
  if (match === null) return undefined;
  const [, node = '', epoch, actionId = ''] = match;
  if (!nodeNamePattern.test(node) || !actionIdPattern.test(actionId)) return undefined;
  return { node, epochMs: Number(epoch), actionId };
}

const text = z.string('is no text');
const instant = text.refine((value) => !Number.isNaN(Date.parse(value)), 'is no instant');

const payloadSchema = z.looseObject(
  {
    action_id: text.regex(actionIdPattern, 'is no id'),
    action_type: optional(text),
    status: z.enum(['completed', 'failed'], 'is neither "completed" nor "failed"'),
    exit_code: optional(z.int('is no number')),
    reason: optional(text),
    started_at: optional(instant),
    finished_at: optional(instant),
    output_tail: optional(text),
    key: optional(text.max(200, 'is longer than 200 characters')),
  },
  'is no object',
);

const eventSchema = z.looseObject(
  {
    timestamp: instant,
    node: text.regex(nodeNamePattern, "is no node's name"),
    type: z.literal('action_result', 'is not "action_result"'),
    service: optional(text.regex(serviceNamePattern, 'is no kebab-case name')),
    payload: payloadSchema,
  },
  'is no object',
);

/** Of our own runner or the seed's. Throws InputError that names the field. */
export function parseResultEvent(bytes: Uint8Array): ActionResult {
  const parsed = eventSchema.safeParse(parseWhole('event', bytes, maxEventBytes));
  if (!parsed.success) {
    const { path = [], message = '' } = parsed.error.issues[0] ?? {};
    throw new InputError(`invalid event: ${path.length === 0 ? 'it' : path.join('.')} ${message}`);
  }
  const { node, service, payload, timestamp } = parsed.data;
  const given = {
    service,
    key: payload.key,
    exitCode: payload.exit_code,
    reason: payload.reason,
    startedAt: payload.started_at,
    outputTail: payload.output_tail,
  };
  return {
    ...{ node, actionId: payload.action_id, actionType: payload.action_type ?? 'redeploy' },
    ...{ status: payload.status, finishedAt: payload.finished_at ?? timestamp },
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}
