// Opens WebSockets and keeps them: `open-tunnels.mjs URL COUNT`. Says `open N` once all have greeted; on each line of its
// stdin it sends a word through every one and says how many came back; ends with its stdin.
import { createInterface } from 'node:readline';

const [url, count] = process.argv.slice(2);
/** Long enough for a busy machine: what is closed is told at once. */
const answerMs = 20_000;

const sockets = Array.from({ length: Number(count) }, () => new WebSocket(url));
const nextMessage = (socket) =>
  new Promise((resolve) => {
    const late = setTimeout(() => resolve(undefined), answerMs);
    const settle = (value) => {
      clearTimeout(late);
      resolve(value);
    };
    socket.addEventListener('message', ({ data }) => settle(data), { once: true });
    socket.addEventListener('close', () => settle(undefined), { once: true });
    if (socket.readyState > WebSocket.OPEN) settle(undefined);
  });

const greetings = await Promise.all(sockets.map(nextMessage));
console.log(`open ${greetings.filter((greeting) => greeting !== undefined).length}`);

for await (const word of createInterface({ input: process.stdin })) {
  const answers = await Promise.all(
    sockets.map((socket) => {
      const answer = nextMessage(socket);
      if (socket.readyState === WebSocket.OPEN) socket.send(word);
      return answer;
    }),
  );
  console.log(`${word} ${answers.filter((answer) => answer === word).length}`);
}
process.exit();
