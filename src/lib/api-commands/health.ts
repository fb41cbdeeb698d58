// `/v1/health`: open to everybody, and tells nothing that is not told elsewhere.
import { uptime } from 'node:os';
import { type HealthAnswer, paths } from '../agenda/wire.ts';
import type { Route } from '../server/route.ts';
import { version } from '../version.ts';

export function healthRoutes(): Route[] {
  // The machine's own: the API ends whenever nobody calls, and its age would tell nothing.
  const answer = (): HealthAnswer => ({ version, uptime_sec: Math.floor(uptime()) });
  return [
    {
      method: 'GET',
      path: paths.health,
      isOpen: true,
      handle: () => Promise.resolve({ status: 200, json: answer() }),
    },
  ];
}
