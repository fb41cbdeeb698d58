import { expect, it } from 'vitest';
import { buildRemoteShell, listKeyFiles, sshDirectory } from '../../../src/lib/rsync/ssh.ts';

const directory = sshDirectory('/etc/reeve');

it('runs ssh with its own keys and hosts, without a question, and with an end', () => {
  const shell = buildRemoteShell({
    keyFiles: listKeyFiles(directory, 'push'),
    knownHostsFile: `${directory}/known_hosts`,
  });
  expect(shell.split(' -o ')).toEqual([
    'ssh -F none',
    ...['BatchMode=yes', 'StrictHostKeyChecking=yes', 'UserKnownHostsFile=/etc/reeve/ssh/known_hosts'],
    ...['GlobalKnownHostsFile=none', 'UpdateHostKeys=no', 'IdentitiesOnly=yes'],
    ...['IdentityFile=/etc/reeve/ssh/push', 'IdentityFile=/etc/reeve/ssh/id_ed25519'],
    ...['ConnectTimeout=15', 'ServerAliveInterval=10', 'ServerAliveCountMax=3'],
    ...['ControlMaster=no', 'ControlPath=none', 'ForwardAgent=no', 'ForwardX11=no'],
    ...['ClearAllForwardings=yes', 'PermitLocalCommand=no', 'LogLevel=ERROR'],
  ]);
});

it('writes paths so that rsync and ssh read them as they are', () => {
  const shell = buildRemoteShell({
    configFile: "/tmp/it's mine/config",
    keyFiles: ['/tmp/50%/a b'],
    knownHostsFile: '/tmp/known',
  });
  expect(shell).toContain("-F '/tmp/it''s mine/config'");
  expect(shell).toContain(`-o 'IdentityFile="/tmp/50%%/a b"'`);
});
