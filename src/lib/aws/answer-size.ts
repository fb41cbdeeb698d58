// How long an answer may be. The SDK takes all of one into memory before it looks at it, whoever has sent it: a machine that is
// asked once a minute must not be lost to that. Objects are read as they come, by whoever knows how long they may be.
import { pipeline, type Readable, Transform } from 'node:stream';

/** The longest is a page of a thousand keys, each of a kilobyte that is written as three. */
const maxAnswerBytes = 16 * 1024 * 1024;

/** With what the SDK would otherwise add a sentence of its own to. */
export class LongAnswer extends Error {
  readonly $metadata = {};
}

type Request = { query?: Readonly<Record<string, unknown>> | undefined };
type Response = { statusCode: number; body?: Readable };
type Handle = (request: Request, ...rest: never[]) => Promise<{ response: Response }>;
type Configuration = { httpHandler(): { handle: unknown } };

/** For the setting `extensions` of any client. */
export const answerLimit = {
  configure(configuration: Configuration): void {
    const handler = configuration.httpHandler() as { handle: Handle };
    const handle = handler.handle.bind(handler);
    handler.handle = async (request, ...rest) => {
      const answer = await handle(request, ...rest);
      const { response } = answer;
      const isObject = request.query?.['x-id'] === 'GetObject' && response.statusCode < 300;
      if (!isObject && response.body !== undefined) response.body = limitBody(response.body);
      return answer;
    };
  },
};

function limitBody(body: Readable): Readable {
  let sizeBytes = 0;
  const limited = new Transform({
    transform: (chunk: Uint8Array, _encoding, pass) => {
      sizeBytes += chunk.byteLength;
      if (sizeBytes <= maxAnswerBytes) pass(null, chunk);
      else pass(new LongAnswer(`an answer of more than ${maxAnswerBytes / 1024 / 1024} MB`));
    },
  });
  // Its failure is that of what it gives, which its reader sees.
  pipeline(body, limited, () => {});
  return limited;
}
