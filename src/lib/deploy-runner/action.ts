// An action's file as a typed value. What it has besides the fields below is not looked at, and goes nowhere.
import * as z from 'zod';
import { InputError } from '../errors.ts';
import { optional, parseWhole } from './fields.ts';
import { actionIdPattern, maxActionBytes, nodeNamePattern, serviceNamePattern } from './names.ts';

export type Action = {
  actionId: string;
  type: string;
  node: string;
  /** Actions of other types may have none. */
  service?: string;
  risk?: string;
  /** As written, whatever directory the file is in. */
  status?: string;
  /** Unix seconds. */
  createdAt?: number;
  updatedAt?: number;
  details: ActionDetails;
  /** Oldest first. */
  transitions: readonly Transition[];
};

/** For people only. */
export type ActionDetails = { image?: string; reason?: string; diff?: string };

export type Transition = {
  from?: string;
  to: string;
  /** As written: unix seconds, or an instant as text. */
  timestamp: number | string;
  by: string;
};

const maxTransitions = 1000;

const text = z.string('is no text').max(1000, 'is longer than 1000 characters');
const seconds = z.number('is no number');
/** People write what they like there. */
const note = z
  .unknown()
  .optional()
  .transform((raw) => (typeof raw === 'string' ? raw : undefined));

const transitionSchema = z.looseObject(
  {
    from: optional(text),
    to: text,
    timestamp: z.union([seconds, text], 'is neither a number nor a text'),
    by: text,
  },
  'is no object',
);

const actionSchema = z.looseObject(
  {
    action_id: z
      .string('is no text')
      .regex(actionIdPattern, 'is no id of lower-case letters, digits and "-"'),
    type: z.string('is no text').regex(/^[A-Za-z][\w-]{0,63}$/, 'is no type'),
    node: z.string('is no text').regex(nodeNamePattern, "is no node's name"),
    service: optional(z.string('is no text').regex(serviceNamePattern, 'is no kebab-case name')),
    risk: optional(text),
    status: optional(text),
    created_at: optional(seconds),
    updated_at: optional(seconds),
    details: optional(z.looseObject({ image: note, reason: note, diff: note }, 'is no object')),
    transition_history: optional(
      z.array(transitionSchema, 'is no list').max(maxTransitions, `has more than ${maxTransitions} entries`),
    ),
  },
  'is no object',
);

/** Throws InputError that names the field. */
export function parseAction(bytes: Uint8Array): Action {
  const parsed = actionSchema.safeParse(parseWhole('action', bytes, maxActionBytes));
  if (!parsed.success) throw new InputError(`invalid action: ${explainIssue(parsed.error)}`);
  const { action_id: actionId, type, node, details, transition_history: history = [], ...rest } = parsed.data;
  return {
    ...{ actionId, type, node },
    ...pickGiven({ service: rest.service, risk: rest.risk, status: rest.status }),
    ...pickGiven({ createdAt: rest.created_at, updatedAt: rest.updated_at }),
    details: pickGiven({ image: details?.image, reason: details?.reason, diff: details?.diff }),
    transitions: history.map(({ from, to, timestamp, by }) => ({
      ...pickGiven({ from }),
      to,
      timestamp,
      by,
    })),
  };
}

function explainIssue({ issues }: z.ZodError): string {
  const [issue] = issues;
  if (issue === undefined || issue.path.length === 0) return 'it is no object';
  const place = issue.path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('');
  return `${place.slice(1)} ${issue.message}`;
}

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Absence is no member at all. */
function pickGiven<T extends object>(members: T): Given<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Given<T>;
}
