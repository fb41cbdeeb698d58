// A client of the strict server, set up as a machine's configuration says.
import { loadConfig } from '../../src/lib/config/load.ts';
import { resolvePaths } from '../../src/lib/config/paths.ts';
import { openControlPlane } from '../../src/lib/control-plane/client.ts';
import type { ControlPlane } from '../../src/lib/control-plane/control-plane.ts';
import { silentLog } from '../../src/lib/report/log.ts';
import { systemClock } from '../../src/lib/time.ts';
import { onTestFinished } from './after-test.ts';
import type { JobsMachine } from './jobs-machine.ts';

export async function openMachinePlane(
  machine: JobsMachine,
  signal = new AbortController().signal,
): Promise<ControlPlane> {
  const paths = resolvePaths(
    { config: `${machine.root}/etc/reeve.yaml` },
    { REEVE_CACHE: `${machine.root}/cache` },
  );
  const { jobs } = await loadConfig(paths, {});
  if (jobs === undefined) throw new Error('there is no section jobs');
  const overrides = { PLOY_NODE_BEARER_TOKEN_PATH: machine.files.token };
  const plane = openControlPlane({ overrides, log: silentLog, clock: systemClock, signal }, jobs);
  onTestFinished(() => plane.close());
  return plane;
}
