// Both ends of a tunnel, for the demo.
//
//   node scripts/demo-tunnels.mjs serve PORT                 an instance: tells what it is asked for, and takes tunnels
//   node scripts/demo-tunnels.mjs open PORT PATH SECONDS...   opens a tunnel for each number, and closes it after so long;
//                                                             tells how each has ended
import { createServer, request } from 'node:http';

const [role, port, path, ...seconds] = process.argv.slice(2);
if (role === 'serve') serve();
else await Promise.all(seconds.map((count) => open(Number(count) * 1000)));

function serve() {
  const server = createServer((req, res) => {
    res.end(`${req.method} ${req.url}\n`);
  });
  server.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n');
    // A word each 100 ms, so that a client sees whether it is still there.
    const beat = setInterval(() => socket.write('.'), 100);
    socket.on('close', () => clearInterval(beat)).on('error', () => {});
    socket.on('end', () => socket.end()).resume();
  });
  server.listen(Number(port), '127.0.0.1');
}

function open(ownMs) {
  const headers = { connection: 'upgrade', upgrade: 'chat' };
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, headers });
    asked.on('error', reject).on('response', ({ statusCode }) => reject(new Error(`got ${statusCode}`)));
    asked.on('upgrade', (_, socket) => {
      const openedAt = performance.now();
      let words = 0;
      let isOurs = false;
      const close = setTimeout(() => {
        isOurs = true;
        socket.end();
      }, ownMs);
      socket.on('data', () => {
        words += 1;
      });
      socket
        .on('error', () => {})
        .on('close', () => {
          clearTimeout(close);
          const lasted = ((performance.now() - openedAt) / 1000).toFixed(1);
          console.log(
            `${isOurs ? 'closed by its client' : 'closed by the proxy'} after ${lasted} s and ${words} words`,
          );
          resolve();
        });
    });
    asked.end();
  });
}
