// The commands of jobs, as data.
import type { CommandSpec } from './command.ts';

export const jobCommands: readonly CommandSpec[] = [];
