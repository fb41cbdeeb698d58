// People who ask an edge all the time while it changes, on connections that are all new, and what is told of a request that
// failed. A failure is all but two things, both of Caddy 2.6 at the moment of a new configuration, in which it surely
// has not processed anything; they are counted, and the request is sent again:
//
// - `alerts`: the handshake ended with the alert "internal error". Nothing was sent.
// - `unread`: over HTTP/2 the connection was closed with GOAWAY, no error, last stream 0, and without an answer: no request
//   of this connection has been processed or will be (RFC 9113, 6.8). Browsers send it again by themselves.
import { join } from 'node:path';
import { caFile, domain } from './edge-box.ts';
import type { Host } from './host.ts';
import type { Program } from './programs.ts';

export type Asked = {
  /** By name of the asker. */
  served: Record<string, number>;
  alerts: number;
  unread: number;
  /** What failed and how, with what Caddy, HAProxy and the edge said meanwhile; empty where nothing did. */
  failures: string;
};

export type Asking = { stop(): Promise<Asked> };

const runtime = '/opt/reeve/current/runtime/node';
/** How long a page takes: longer than from the beginning of a change until Caddy has been told. */
const slowMs = 4_000;
/** How long a connection waits with its request. After five seconds Caddy may close it. */
const lateMs = 2_000;

const url = `https://${domain}/`;
const curls: Readonly<Record<string, readonly string[]>> = {
  'HTTP/2': [url],
  'HTTP/1.1': [url, '--http1.1'],
  'slow GET': [`${url}after/${slowMs}`],
  'slow POST': [`${url}after/${slowMs}`, '--http1.1', '--data', 'form'],
};

/** One request after the other until its stdin ends. */
const askScript = `#!/bin/sh
name=$1 trace=$(mktemp)
shift
served=0 failed=0 alerts=0 unread=0
tell='HTTP/%{http_version} status %{http_code}, header %{size_header} B, body %{size_download} B; connected %{time_connect}, TLS %{time_appconnect}, first byte %{time_starttransfer}, end %{time_total} s'
ask() {
  began=$(date +%T.%N) status=0
  answer=$(curl -v -sS --fail --max-time 20 --cacert ${caFile} -o /dev/null -w "$tell" "$@" 2>"$trace") || status=$?
  ended=$(date +%T.%N)
}
# What surely was not processed.
is_again() {
  case $status in
    35) grep -q 'tlsv1 alert internal error' "$trace" && alerts=$((alerts + 1)) ;;
    16) grep -q 'GOAWAY, error=0, last_stream=0 *$' "$trace" && ! grep -q '^< ' "$trace" && unread=$((unread + 1)) ;;
    *) return 1 ;;
  esac
}
# A job in the background has no stdin of its own.
exec 3<&0
( cat <&3 >/dev/null; rm "$trace.on" ) &
touch "$trace.on"
echo asking
while [ -e "$trace.on" ]; do
  for try in 1 2 3 4 5; do
    ask "$@"
    if [ $status = 0 ]; then served=$((served + 1)); break; fi
    if [ $try -lt 5 ] && is_again; then sleep 0.04; continue; fi
    failed=$((failed + 1))
    echo "$name: $began to $ended: curl ended with $status: $answer"
    grep -v ' bytes data\\]$' "$trace" | tail -n 12 | sed 's/^/    /'
    break
  done
done
echo "counts $served $failed $alerts $unread"
`;

/** Waits until all of them ask. */
export async function startAsking(host: Host): Promise<Asking> {
  const since = (await host.output(['date', '+%F %T'])).trim();
  await host.write('/root/ask', askScript, '0755');
  await host.copy(join(import.meta.dirname, 'programs/late-requests.mjs'), '/root');
  const askers = new Map<string, Program>([
    ...Object.entries(curls).map(([name, args]) => [name, host.start(['/root/ask', name, ...args])] as const),
    ['late', host.start([runtime, '/root/late-requests.mjs', domain, caFile, String(lateMs)])],
  ]);
  await Promise.all([...askers.values()].map((asker) => asker.waitFor('asking')));
  return {
    stop: async () => {
      const asked: Asked = { served: {}, alerts: 0, unread: 0, failures: '' };
      for (const asker of askers.values()) asker.child.stdin.end();
      for (const [name, asker] of askers) {
        const { stdout, stderr } = await asker.ended;
        const [, told = '', ...counts] = /^asking\n(.*)counts (\d+) (\d+) (\d+) (\d+)\n$/s.exec(stdout) ?? [];
        const [served = 0, , alerts = 0, unread = 0] = counts.map(Number);
        asked.served[name] = served;
        asked.alerts += alerts;
        asked.unread += unread;
        asked.failures += counts.length > 0 ? told : `${name} did not end well: ${stdout}${stderr}\n`;
      }
      if (asked.failures !== '') asked.failures += await tellJournal(host, since);
      return asked;
    },
  };
}

const maxLines = 400;

async function tellJournal(host: Host, since: string): Promise<string> {
  const units = ['caddy.service', 'reeve-balancer.service', 'reeve-edge.service'];
  const argv = ['journalctl', '--no-pager', '-o', 'short-precise', '--since', since, '-n', String(maxLines)];
  const text = await host.output([...argv, ...units.flatMap((unit) => ['-u', unit])]);
  return text.replaceAll(/^(.{400}).*$/gm, '$1 ...');
}
