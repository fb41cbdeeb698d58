// What the executor's part of the control side can do with an action.
import type { Found, FoundAction, Handed } from '../actions/control/found.ts';
import type { Reported } from './facts.ts';

export type Step = DispatchStep | FinishStep | RefuseStep | WithdrawStep | WaitStep;

/** From approved to running: its node is given the file. */
export type DispatchStep = { kind: 'dispatch'; found: FoundAction; key: string; reason: string };

/** From running to its end. */
export type FinishStep = {
  kind: 'finish';
  found: FoundAction;
  to: 'completed' | 'failed';
  reason: string;
  reported?: Reported;
};

/** Out of the way, since it can never be carried out. */
export type RefuseStep = {
  kind: 'refuse';
  found: Found;
  to: 'rejected' | 'failed';
  reason: string;
};

/** From the directory of its node, which is not to begin it: somebody has taken back what had been dispatched. */
export type WithdrawStep = { kind: 'withdraw'; found: FoundAction; handed: Handed; reason: string };

/** Nothing is done now. `isTrouble`: nor later, until a person does something. */
export type WaitStep = { kind: 'wait'; found: Found; reason: string; isTrouble?: true };
