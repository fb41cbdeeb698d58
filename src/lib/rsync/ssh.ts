// The ssh that rsync runs: with keys, known hosts and settings of our own alone, so that it does the same from a unit, which sees no
// home directory, as for a person. It never asks, and it gives up by itself.
import { join } from 'node:path';

export type SshFiles = {
  /** Settings of the operator's: a port, a jump host. Undefined: none. */
  configFile?: string;
  /** In the order in which they are offered; what is not there is left out. */
  keyFiles: readonly string[];
  knownHostsFile: string;
};

/** `/etc/reeve/ssh`: beside the configuration, which a unit may read. */
export function sshDirectory(configDirectory: string): string {
  return join(configDirectory, 'ssh');
}

/** A restricted key leads to one directory, so that both directions have one each; the general one is offered last. */
export function listKeyFiles(directory: string, direction: 'pull' | 'push'): string[] {
  return [join(directory, direction), join(directory, 'id_ed25519')];
}

const connectSeconds = 15;
/** A link that is cut is noticed after both together: half a minute. */
const aliveSeconds = 10;
const aliveTries = 3;

/** For rsync's `-e`. Options come before the file: the first value counts for ssh. */
export function buildRemoteShell({ configFile, keyFiles, knownHostsFile }: SshFiles): string {
  const options = [
    'BatchMode=yes',
    'StrictHostKeyChecking=yes',
    `UserKnownHostsFile=${quoteOption(knownHostsFile)}`,
    'GlobalKnownHostsFile=none',
    'UpdateHostKeys=no',
    'IdentitiesOnly=yes',
    ...keyFiles.map((file) => `IdentityFile=${quoteOption(file)}`),
    `ConnectTimeout=${connectSeconds}`,
    `ServerAliveInterval=${aliveSeconds}`,
    `ServerAliveCountMax=${aliveTries}`,
    'ControlMaster=no',
    'ControlPath=none',
    'ForwardAgent=no',
    'ForwardX11=no',
    'ClearAllForwardings=yes',
    'PermitLocalCommand=no',
    'LogLevel=ERROR',
  ];
  const words = ['ssh', '-F', configFile ?? 'none', ...options.flatMap((option) => ['-o', option])];
  return words.map(quoteWord).join(' ');
}

/** ssh splits the values of some options at blanks, and reads `%` as the start of something. */
function quoteOption(path: string): string {
  const escaped = path.replaceAll('%', '%%');
  return /\s/.test(escaped) ? `"${escaped}"` : escaped;
}

/** rsync splits `-e` at blanks by itself: within quotes, a quote is written twice. */
function quoteWord(word: string): string {
  return /[\s'"]/.test(word) ? `'${word.replaceAll("'", "''")}'` : word;
}
