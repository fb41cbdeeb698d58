// What every client of a cloud service is made with: where it is, and how long it may take. The clients themselves are loaded
// by whoever needs one.
import { ConfigError } from '../errors.ts';

/** Where the services are. Credentials come the SDK's own way: environment, shared files, the machine's role. */
export type CloudPlace = {
  region: string;
  /** Of an S3-compatible service or an emulator; absent: AWS. */
  endpoint?: string;
};

/** What a configuration has that names no region. */
const noRegion = 'local';
/** What services take that have no regions: one is signed for. */
const anyRegion = 'us-east-1';

/** Throws ConfigError where only AWS itself is left, and nothing says where in it. */
export function cloudPlaceOf({
  region,
  endpoint,
}: {
  region: string;
  endpoint?: string | undefined;
}): CloudPlace {
  if (endpoint !== undefined) return { region: region === noRegion ? anyRegion : region, endpoint };
  if (region !== noRegion) return { region };
  throw new ConfigError('cannot reach AWS: cluster.region is missing', { code: 'region' });
}
