// What a Node.js program would be as the node's proxy: `forward-http.mjs PORT`. Takes /i/INSTANCE/REST and passes it on to
// the port that INSTANCE is, over kept connections. For comparison alone.
import { Agent, createServer, request } from 'node:http';

const agent = new Agent({ keepAlive: true, maxSockets: 256, maxFreeSockets: 256 });
const server = createServer((incoming, outgoing) => {
  const [, port = '', rest = '/'] = /^\/i\/(\d+)(\/.*)?$/.exec(incoming.url) ?? [];
  const { method, headers } = incoming;
  const forwarded = request({ host: '127.0.0.1', port, path: rest, method, headers, agent }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  forwarded.on('error', () => outgoing.writeHead(502).end());
  incoming.pipe(forwarded);
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log('listening'));
