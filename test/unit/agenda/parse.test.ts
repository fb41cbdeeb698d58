import { describe, expect, it } from 'vitest';
import { parseJobRequest } from '../../../src/lib/agenda/parse.ts';
import { InputError } from '../../../src/lib/errors.ts';

describe('parseJobRequest', () => {
  it('takes a program with its arguments (A52)', () => {
    const raw = {
      job_id: 'j',
      dir: '/srv',
      env: ['A=1', 'B=x=y', 'C='],
      mode: 'cmd',
      name: 'make',
      args: ['-j', ''],
    };
    expect(parseJobRequest(raw)).toEqual({
      ...{ jobId: 'j', dir: '/srv', env: ['A=1', 'B=x=y', 'C='] },
      ...{ mode: 'cmd', name: 'make', args: ['-j', ''] },
    });
  });

  it('takes a text for a shell, and nothing else of the other mode (A52)', () => {
    const raw = { job_id: 'j', mode: 'shell', shell: 'a\nb', name: 'x', args: ['y'] };
    expect(parseJobRequest(raw)).toEqual({ jobId: 'j', dir: '', env: [], mode: 'shell', shell: 'a\nb' });
  });

  it('takes null for what is left away, and lets unknown keys through', () => {
    const raw = {
      job_id: 'j',
      dir: null,
      env: null,
      mode: 'cmd',
      name: 'x',
      args: null,
      shell: null,
      more: 1,
    };
    expect(parseJobRequest(raw)).toEqual({ jobId: 'j', dir: '', env: [], mode: 'cmd', name: 'x', args: [] });
  });

  it.each<[string, unknown, string]>([
    ['null', null, 'invalid request: it is no object'],
    ['a list', [], 'invalid request: it is no object'],
    ['a text', 'x', 'invalid request: it is no object'],
    ['no id', { mode: 'shell', shell: 'x' }, 'job_id is required'],
    ['an id of null', { job_id: null, mode: 'shell', shell: 'x' }, 'job_id is required'],
    [
      'an id that is too long',
      { job_id: 'x'.repeat(513), mode: 'shell', shell: 'x' },
      'invalid request: job_id is longer than 512 characters',
    ],
    [
      'an id with half a character',
      { job_id: 'j\ud800', mode: 'shell', shell: 'x' },
      'invalid request: job_id has characters that no program can be given',
    ],
    ['no mode', { job_id: 'j' }, 'invalid request: mode is neither "cmd" nor "shell"'],
    [
      'a mode in capitals',
      { job_id: 'j', mode: 'CMD', name: 'x' },
      'invalid request: mode is neither "cmd" nor "shell"',
    ],
    ['no program', { job_id: 'j', mode: 'cmd', name: '' }, 'name is required in this mode'],
    ['no text for the shell', { job_id: 'j', mode: 'shell', name: 'x' }, 'shell is required in this mode'],
    [
      'a directory that is none',
      { job_id: 'j', mode: 'shell', shell: 'x', dir: 7 },
      'invalid request: dir is no text',
    ],
    [
      'an environment that is a map',
      { job_id: 'j', mode: 'shell', shell: 'x', env: { A: '1' } },
      'invalid request: env is no list',
    ],
    [
      'a variable without a name',
      { job_id: 'j', mode: 'shell', shell: 'x', env: ['A=1', '=1'] },
      'invalid request: env[1] is no NAME=value',
    ],
    [
      'an argument that is no text',
      { job_id: 'j', mode: 'cmd', name: 'x', args: ['a', 1] },
      'invalid request: args[1] is no text',
    ],
    [
      'a NUL',
      { job_id: 'j', mode: 'shell', shell: 'a\0b' },
      'invalid request: shell has characters that no program can be given',
    ],
    [
      'half a character',
      { job_id: 'j', mode: 'shell', shell: 'x', dir: '/\ud800' },
      'invalid request: dir has characters that no program can be given',
    ],
  ])('refuses %s by name (A53)', (_, raw, message) => {
    expect(() => parseJobRequest(raw)).toThrow(new InputError(message));
  });

  it('tells one fault of a list that is nothing else, as long as a body has room for it (A53)', () => {
    const raw = { job_id: 'j', mode: 'cmd', name: 'x', args: ['a'].concat(Array(2_000_000).fill(1)) };
    const before = process.memoryUsage.rss();
    expect(() => parseJobRequest(raw)).toThrow(new InputError('invalid request: args[1] is no text'));
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 2 ** 20);
  });
});
