// The sizes and times that ploy's two sides have agreed on, each with its reason.

const kib = 1 << 10;
const mib = 1 << 20;

export const limits = {
  /** Of an upload's content, before base64. */
  uploadBytes: 10 * mib,
  /** Of a chunk's frames before they are compressed: whatever they are, gzip cannot bring them over the cap. */
  chunkBytes: 4 * mib,
  /** Of one frame with its line feed; a longer line is cut into several. */
  frameBytes: 256 * kib,
  /** How long a line waits for its chunk. */
  chunkAgeMs: 2000,
  /** Of a body to the node's own `/v1/run/start`. */
  startBodyBytes: 10 * mib,
  /** Of one file in a bundle. */
  bundleFileBytes: 32 * mib,
  /** Of a bundle as it is fetched. The server takes none that is larger. */
  bundleBytes: 50 * mib,
  /** Of an error in a completion, so that its body never gets too large to be taken. */
  errorCharacters: 16 * kib,
  /** Of a request that no other limit is for. */
  requestMs: 30_000,
  claimMs: 10_000,
  /** Of a log chunk, of events, of an image's name. */
  logsMs: 10_000,
  completeMs: 10_000,
  statusMs: 5000,
  /** Between two looks for a cancellation. */
  cancelWatchMs: 3000,
} as const;
