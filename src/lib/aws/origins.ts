// Whom a client has asked, for messages: the SDK's errors do not tell, and the configuration is not alone in saying it
// (`AWS_ENDPOINT_URL_S3`, the shared file of AWS's own tools).

export type Asked = {
  /** Without a path and credentials. */
  origin: string;
  method: string;
};

type Request = { protocol: string; hostname: string; port?: number | undefined; method: string };
type Handle = (request: Request, ...rest: never[]) => Promise<{ response: object }>;
type Configuration = { httpHandler(): { handle: unknown } };

/** By the error of a connection, and by the answer that an error of the service is made of. */
const known = new WeakMap<object, Asked>();

/** For the setting `extensions` of any client. */
export const originNotes = [
  {
    configure(configuration: Configuration): void {
      const handler = configuration.httpHandler() as { handle: Handle };
      const handle = handler.handle.bind(handler);
      handler.handle = async (request, ...rest) => {
        const { protocol, hostname, port, method } = request;
        const asked = { origin: `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`, method };
        try {
          const answer = await handle(request, ...rest);
          known.set(answer.response, asked);
          return answer;
        } catch (error) {
          if (error instanceof Error) known.set(error, asked);
          throw error;
        }
      };
    },
  },
];

/** Undefined where nobody has been asked. */
export function askedFor(error: unknown): Asked | undefined {
  if (!(error instanceof Error)) return undefined;
  const { $response: response } = error as { $response?: object };
  return known.get(error) ?? (response && known.get(response));
}
