// The record of a command on this node: one file, written before each transition is made, and its output beside it. A note beside
// it says that it was deleted, whatever the record says, until whoever has its lock has removed all of it.
import { join } from 'node:path';
import type { JobRequest } from '../agenda/wire.ts';
import type { Paths } from '../config/paths.ts';
import type { ProcessName } from '../host/processes.ts';
import { safeFileId } from '../ids.ts';

export type CommandRecord = {
  jobId: string;
  /** Another one for each time that an id is taken, so that a note about an earlier one is told from one about this. */
  generation: string;
  acceptedAt: string;
  /** Of the machine: what another boot has begun does not run any more. */
  bootId: string;
  state: CommandState;
};

export type CommandState =
  /** Nothing has been started. `request` is here and in the next state only: its environment may hold secrets. */
  | { kind: 'accepted'; request: JobRequest }
  /** Written before the command is started. */
  | {
      kind: 'running';
      request: JobRequest;
      startedAt: string;
      /** Our own process. */
      runner: NamedProcess;
      /** The command's, which leads its group: known a moment later. */
      group?: NamedProcess;
    }
  | { kind: 'success'; startedAt: string; endedAt: string }
  /** `exitCode`: -1 where the command did not end by itself. */
  | { kind: 'failed'; startedAt?: string; endedAt: string; exitCode: number; error: string };

/** The boot is the record's. */
export type NamedProcess = Omit<ProcessName, 'bootId'>;

/** Of a command that was deleted. */
export type CommandCancel = { generation: string; at: string };

export function commandsDir({ stateDir }: Pick<Paths, 'stateDir'>): string {
  return join(stateDir, 'commands');
}

export type EndedState = Extract<CommandState, { kind: 'success' | 'failed' }>;

export function isEnded(state: CommandState): state is EndedState {
  return state.kind === 'success' || state.kind === 'failed';
}

/** The name of a command's files, of its unit's instance and of its lock. */
export function commandKey(jobId: string): string {
  return safeFileId(jobId);
}

export function recordPath(paths: Pick<Paths, 'stateDir'>, key: string): string {
  return join(commandsDir(paths), `${key}.json`);
}

export function outputPath(paths: Pick<Paths, 'stateDir'>, key: string): string {
  return join(commandsDir(paths), `${key}.output`);
}

/** Named for the generation: whoever removes an earlier command does not remove the note about this one. */
export function cancelPath(paths: Pick<Paths, 'stateDir'>, key: string, generation: string): string {
  return join(commandsDir(paths), `${key}.${cancelPrefix}${generation}`);
}

export const cancelPrefix = 'cancel-';
