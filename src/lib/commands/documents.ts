// The shapes of a command's records on disk, checked by hand: every command's process reads them.
import { externalIdPattern } from '../ids.ts';
import { defineDocument } from '../state/document.ts';
import { isRecord, requireText } from '../state/shape.ts';
import type { CommandCancel, CommandRecord, CommandState } from './records.ts';

export const recordDocument = defineDocument<CommandRecord>({
  version: 1,
  isCompact: true,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['jobId', 'generation', 'acceptedAt', 'bootId']) requireText(raw, name);
    if (!externalIdPattern.test(String(raw['generation']))) throw new TypeError('generation is no name');
    if (!isState(raw['state'])) throw new TypeError('state has the wrong shape');
    return raw as unknown as CommandRecord;
  },
});

export const cancelDocument = defineDocument<CommandCancel>({
  version: 1,
  isCompact: true,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['generation', 'at']) requireText(raw, name);
    return raw as unknown as CommandCancel;
  },
});

const isRight: Readonly<Record<CommandState['kind'], (state: Record<string, unknown>) => boolean>> = {
  accepted: ({ request }) => isRequest(request),
  running: ({ request, startedAt, runner, group }) =>
    isRequest(request) && isText(startedAt) && isProcess(runner) && (group === undefined || isProcess(group)),
  success: ({ startedAt, endedAt }) => isText(startedAt) && isText(endedAt),
  failed: ({ endedAt, exitCode, error }) => isText(endedAt) && Number.isInteger(exitCode) && isText(error),
};

function isState(raw: unknown): boolean {
  const kind = isRecord(raw) ? raw['kind'] : undefined;
  if (!isRecord(raw) || typeof kind !== 'string' || !Object.hasOwn(isRight, kind)) return false;
  return isRight[kind as CommandState['kind']](raw);
}

function isRequest(raw: unknown): boolean {
  if (!isRecord(raw) || !isText(raw['jobId']) || !isText(raw['dir']) || !areTexts(raw['env'])) return false;
  const { mode, name, args, shell } = raw;
  return (mode === 'cmd' && isText(name) && areTexts(args)) || (mode === 'shell' && isText(shell));
}

function isProcess(raw: unknown): boolean {
  return isRecord(raw) && Number.isSafeInteger(raw['pid']) && isText(raw['startTime']);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}
