import { describe, expect, it } from 'vitest';
import { describeCommands, firstWords, secondWords } from '../../../src/lib/completion/describe.ts';

const tree = describeCommands(
  [
    {
      path: 'lock',
      summary: 'run a command under a lock',
      arguments: [
        { name: '<name>', description: 'the lock' },
        { name: '[command...]', description: 'the command' },
      ],
      options: [{ flags: '--wait <seconds>', description: 'wait' }],
    },
    { path: 'lock list', summary: 'who holds what' },
    {
      path: 'units render',
      summary: 'drop-ins',
      options: [{ flags: '--root <directory>', description: '/' }],
    },
    { path: 'deploy', summary: 'deploy', arguments: [{ name: '[file]', description: 'YAML file' }] },
    {
      path: 'completion',
      summary: 'scripts',
      arguments: [{ name: '<shell>', description: 'bash, zsh or fish' }],
      options: [{ flags: '--wait [seconds]', description: 'wait' }],
    },
  ],
  [{ flags: '--json', description: 'JSON' }],
);

describe('the commands for completion', () => {
  it('have flags with what kind of value each takes', () => {
    expect(tree.globalFlags).toEqual([{ name: '--json', description: 'JSON', value: 'none' }]);
    expect(tree.commands.flatMap(({ flags }) => flags.map(({ name, value }) => `${name} ${value}`))).toEqual([
      '--wait text',
      '--root files',
      '--wait optional',
    ]);
  });

  it('have the long form of a flag that has a short one as well', () => {
    const follow = { flags: '-f, --follow', description: 'stay' };
    const [command] = describeCommands(
      [{ path: 'job logs', summary: 'output', options: [follow] }],
      [],
    ).commands;
    expect(command?.flags).toEqual([{ name: '--follow', description: 'stay', value: 'none' }]);
  });

  it('have arguments that are files, programs, words or unknown', () => {
    expect(tree.commands.map(({ path, argument }) => [path, argument])).toEqual([
      ['lock', 'program'],
      ['lock list', 'none'],
      ['units render', 'none'],
      ['deploy', 'files'],
      ['completion', ['bash', 'zsh', 'fish']],
    ]);
  });

  it('are reached over first and second words', () => {
    expect(firstWords(tree).map(({ word }) => word)).toEqual(['lock', 'units', 'deploy', 'completion']);
    expect(secondWords(tree, 'lock')).toEqual([{ word: 'list', summary: 'who holds what' }]);
    expect(secondWords(tree, 'deploy')).toEqual([]);
  });
});
