// The shapes of the node's own files about actions, checked by hand.
import { defineDocument } from '../state/document.ts';
import { isRecord, requireText } from '../state/shape.ts';
import type { LastAction } from './last-end.ts';
import type { Marker, MarkerState } from './markers.ts';

export const markerDocument = defineDocument<Marker>({
  version: 1,
  isCompact: true,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['actionId', 'key', 'actionType', 'run']) requireText(raw, name);
    if (!isTextOrNone(raw['service'])) throw new TypeError('service is no text');
    if (!isState(raw['state'])) throw new TypeError('state has the wrong shape');
    return raw as unknown as Marker;
  },
});

/** The time in the name of the last result. */
export const eventClockDocument = defineDocument<{ epochMs: number }>({
  version: 1,
  isCompact: true,
  parse: ({ epochMs }) => {
    if (typeof epochMs !== 'number' || !Number.isInteger(epochMs) || !isInstant(epochMs)) {
      throw new TypeError('epochMs is no instant');
    }
    return { epochMs };
  },
});

/** Since 1970, and of those that a clock can tell. */
function isInstant(epochMs: number): boolean {
  return epochMs >= 0 && epochMs <= 8_640_000_000_000_000;
}

/** What has ended last. */
export const lastEndDocument = defineDocument<LastAction>({
  version: 1,
  isCompact: true,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['actionId', 'endedAt']) requireText(raw, name);
    const texts = isTextOrNone(raw['service']) && isTextOrNone(raw['reason']);
    if (!texts || !outcomes.includes(raw['outcome'])) throw new TypeError('it is no end');
    return raw as unknown as LastAction;
  },
});

const outcomes: readonly unknown[] = ['succeeded', 'failed', 'rejected', 'unknown'];

const isRight: Readonly<Record<MarkerState['kind'], (state: Record<string, unknown>) => boolean>> = {
  started: ({ startedAt, group }) => isText(startedAt) && (group === undefined || isProcess(group)),
  ended: (state) => isEnd(state) && isText(state['event']),
  reported: (state) => isEnd(state),
};

function isState(raw: unknown): boolean {
  const kind = isRecord(raw) ? raw['kind'] : undefined;
  if (!isRecord(raw) || typeof kind !== 'string' || !Object.hasOwn(isRight, kind)) return false;
  return isRight[kind as MarkerState['kind']](raw);
}

function isEnd({
  outcome,
  startedAt,
  endedAt,
  exitCode,
  reason,
  eventName,
}: Record<string, unknown>): boolean {
  const texts = isText(endedAt) && isFileName(eventName) && isTextOrNone(startedAt) && isTextOrNone(reason);
  return texts && outcomes.includes(outcome) && (exitCode === undefined || Number.isInteger(exitCode));
}

function isProcess(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  const { bootId, pid, startTime } = raw;
  return isText(bootId) && Number.isSafeInteger(pid) && isText(startTime);
}

/** It becomes a path. */
function isFileName(value: unknown): boolean {
  return typeof value === 'string' && /^[^./\0][^/\0]*$/.test(value);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || isText(value);
}
