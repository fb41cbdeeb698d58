// How long ago something was, in words. Pure.
import { formatDuration } from '../time.ts';

export function ago(instant: string, now: Date): string {
  const ageMs = now.getTime() - Date.parse(instant);
  if (Number.isNaN(ageMs)) return 'at an unknown time';
  return ageMs < 0 ? `${formatDuration(-ageMs)} ahead of this clock` : `${formatDuration(ageMs)} ago`;
}
