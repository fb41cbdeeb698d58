// What systemd is for a socket-activated service (Accept=no, Type=exec, no limits): it holds the listening socket, and starts
// the service when somebody waits on it and none runs. A small program in perl, which every Debian has: Node.js can neither
// keep a socket without taking its connections, nor hand one down with the process's own number in the environment.
import { inject } from 'vitest';
import { onTestFinished } from './after-test.ts';
import { type Program, startProcess } from './programs.ts';

export type SocketHolder = {
  readonly port: number;
  /** Of the holder itself, and so of its network where it has one of its own. */
  readonly pid: number;
  /** How often the service has been started. */
  starts(): number;
  /** Its process, where it runs. */
  servicePid(): number | undefined;
  /** What services have told, all together. */
  log(): string;
  stop(): Promise<void>;
};

const script = `
use strict; use warnings; use Socket; use POSIX qw(:sys_wait_h dup2);
$| = 1; $^F = 3;
socket(my $listener, PF_INET, SOCK_STREAM, 0) or die $!;
setsockopt($listener, SOL_SOCKET, SO_REUSEADDR, 1);
bind($listener, sockaddr_in(0, inet_aton($ENV{REEVE_TEST_ADDRESS} // '127.0.0.1'))) or die $!;
listen($listener, 4096) or die $!;
my ($port) = sockaddr_in(getsockname($listener));
print "port $port\\n";
my ($child, $stop) = (0, 0);
$SIG{TERM} = sub { $stop = 1; kill 'TERM', $child if $child };
while (!$stop) {
  my $ready = ''; vec($ready, fileno($listener), 1) = 1;
  next unless select($ready, undef, undef, 0.5) > 0;
  last if $stop;
  # What it is called is told before it can have done anything.
  pipe(my $told, my $telling) or die $!;
  $child = fork();
  if (!$child) {
    $SIG{TERM} = 'DEFAULT';
    close($telling);
    sysread($told, my $nothing, 1);
    dup2(fileno($listener), 3) unless fileno($listener) == 3;
    $ENV{LISTEN_PID} = $$; $ENV{LISTEN_FDS} = 1; $ENV{LISTEN_FDNAMES} = 'test';
    exec @ARGV or die $!;
  }
  print "start $child\\n";
  close($telling);
  while (waitpid($child, 0) != $child) {}
  print "end $child $?\\n";
  $child = 0;
}
`;

export async function holdSocket(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  whenFinished: (clean: () => Promise<void>) => void = onTestFinished,
): Promise<SocketHolder> {
  const program: Program = startProcess('perl', ['-e', script, inject('reeveBin'), ...words], env);
  return await watchHolder(program, whenFinished);
}

/** In a network of its own, where any address may be listened on: nobody else is there. */
export async function holdPublicSocket(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<SocketHolder> {
  const perl = ['perl', '-e', script, inject('reeveBin'), ...words];
  const args = ['-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...perl];
  const program = startProcess('unshare', args, { ...env, REEVE_TEST_ADDRESS: '0.0.0.0' });
  return await watchHolder(program, onTestFinished);
}

async function watchHolder(
  program: Program,
  whenFinished: (clean: () => Promise<void>) => void,
): Promise<SocketHolder> {
  let [stdout, stderr] = ['', ''];
  program.child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  program.child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const stop = async (): Promise<void> => {
    program.child.kill('SIGTERM');
    await program.ended;
  };
  whenFinished(stop);
  await program.waitFor('port ');
  const lines = (word: string): string[] => stdout.split('\n').filter((line) => line.startsWith(`${word} `));
  return {
    pid: program.pid,
    port: Number(lines('port')[0]?.split(' ')[1]),
    starts: () => lines('start').length,
    servicePid: () => {
      const pid = lines('start').at(-1)?.split(' ')[1];
      const hasEnded = lines('end').some((line) => line.split(' ')[1] === pid);
      return pid === undefined || hasEnded ? undefined : Number(pid);
    },
    log: () => stderr,
    stop,
  };
}
