// A web service for containers: pages that name version and host, a health check, and WebSockets that echo. On SIGTERM it
// takes nothing new, finishes what it has begun, and keeps its tunnels until it is killed or they end.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { hostname } from 'node:os';

const name = `web ${process.env.VERSION ?? 'v0'} on ${hostname()}`;
const magic = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

const server = createServer((request, response) => {
  // A connection that stays open across the stop would be closed under a request.
  response.setHeader('connection', stopping ? 'close' : 'keep-alive');
  const [, delayMs = '0'] = /^\/after\/(\d+)$/.exec(request.url) ?? [];
  const page = request.url === '/healthz' ? 'ok\n' : `${name}\n`;
  setTimeout(() => response.end(page), Number(delayMs));
});
server.keepAliveTimeout = 60_000;

let stopping = false;

server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1')
    .update(request.headers['sec-websocket-key'] + magic)
    .digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  const greeting = Buffer.from(name);
  socket.write(Buffer.concat([Buffer.from([0x81, greeting.length]), greeting]));
  // Small masked frames in, the same unmasked out.
  socket.on('data', (data) => {
    for (let at = 0; at + 6 <= data.length; ) {
      const length = data[at + 1] & 0x7f;
      const mask = data.subarray(at + 2, at + 6);
      const payload = Buffer.from(data.subarray(at + 6, at + 6 + length)).map(
        (byte, i) => byte ^ mask[i % 4],
      );
      socket.write(Buffer.concat([Buffer.from([0x81, length]), payload]));
      at += 6 + length;
    }
  });
  socket.on('error', () => socket.destroy());
});

process.on('SIGTERM', () => {
  stopping = true;
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
server.listen(Number(process.env.PORT ?? 8080), () => console.log('listening'));
