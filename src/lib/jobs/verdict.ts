// What an answer to the end of a job means: whether it is sent again, kept for later, or asked about. Pure.
import { isPassingStatus } from '../http/retry.ts';

export type AnswerVerdict =
  /** The server's own trouble, or no answer: sent again at once, a few times. */
  | 'trouble'
  /** Not of this end, but of whoever sends it or of how often: a new token or another hour makes it good. */
  | 'not-now'
  /** Of this end: the same answer would come again and again. What becomes of the job is a question of its status. */
  | 'refused';

/** Token and proxy. */
const ofSender: readonly number[] = [401, 407];
/** A 403 of the job itself. Others are of a role or of something between, and all have the one status. */
const notOurs = 'not assigned to this node';

export function judgeAnswer({
  status,
  answer,
}: {
  status: number | undefined;
  answer: string;
}): AnswerVerdict {
  if (status === undefined || status >= 500) return 'trouble';
  // A redirection is nothing that the server says itself.
  if (status < 400 || isPassingStatus(status) || ofSender.includes(status)) return 'not-now';
  return status === 403 && !answer.includes(notOurs) ? 'not-now' : 'refused';
}

/** `unknown`: it could not be asked. `none`: the server has no such job, or none of this node. */
export type StatusVerdict = 'ended' | 'running' | 'waiting' | 'none' | 'unknown';

const ended: readonly string[] = ['success', 'fail', 'error', 'cancelled'];

/** By the server's word; `waiting` is any that is neither an end nor under way, as after a server was restored. */
export function judgeStatus(status: string): StatusVerdict {
  const word = status.toLowerCase();
  if (ended.includes(word)) return 'ended';
  return word === 'running' ? 'running' : 'waiting';
}
