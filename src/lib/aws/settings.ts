// What every client of a cloud service is made with: where it is, and how long it may take. The clients themselves are loaded
// by whoever needs one.
/** Where the services are. Credentials come the SDK's own way: environment, shared files, the machine's role. */
export type CloudPlace = {
  region: string;
  /** Of an S3-compatible service or an emulator; absent: AWS. */
  endpoint?: string;
};

export function cloudPlaceOf({
  region,
  endpoint,
}: {
  region: string;
  endpoint?: string | undefined;
}): CloudPlace {
  return { region, ...(endpoint === undefined ? {} : { endpoint }) };
}
